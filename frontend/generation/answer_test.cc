#include "frontend/generation/answer.h"

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include "tests/testing/fake_tokenizer.h"
#include "tests/testing/recording_sink.h"

namespace lockstep {
namespace {

v1::WorkerGenerateResponse Message(const std::string& text) {
  v1::WorkerGenerateResponse message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message));
  return message;
}

v1::WorkerGenerateResponse Delta(uint32_t index, const std::string& bytes) {
  v1::WorkerGenerateResponse message;
  message.mutable_delta()->set_index(index);
  for (const char c : bytes) {
    message.mutable_delta()->add_token_ids(static_cast<uint8_t>(c));
  }
  return message;
}

class AnswerTest : public testing::Test {
 protected:
  AnswerTest() {
    spec_.request_id = "r1";
    spec_.model = {"tiny", 100, 512};
  }

  absl::Status Add(const v1::WorkerGenerateResponse& message) {
    return answer_.Add(message, &stopped_);
  }

  GenerateSpec spec_;
  FakeTokenizer tokenizer_;
  RecordingSink sink_;
  Answer answer_{&spec_, &tokenizer_, &sink_};
  std::vector<uint32_t> stopped_;
};

TEST_F(AnswerTest, TextThenFinishThenSummary) {
  ASSERT_TRUE(Add(Message("accepted { request_id: 'w' prompt_tokens: 5 "
                          "seed: 7 }"))
                  .ok());
  ASSERT_TRUE(Add(Delta(0, "h\xc3")).ok());
  ASSERT_TRUE(Add(Delta(0, "\xa9!")).ok());
  ASSERT_TRUE(Add(Message("finish { reason: STOP stop_token_id: 257 usage { "
                          "prompt_tokens: 5 cached_tokens: 2 "
                          "completion_tokens: 4 } }"))
                  .ok());
  EXPECT_FALSE(answer_.complete());
  ASSERT_TRUE(Add(Message("summary { usage { prompt_tokens: 5 cached_tokens: "
                          "2 completion_tokens: 4 } timing { "
                          "first_token_us: 9 } }"))
                  .ok());
  EXPECT_TRUE(answer_.complete());

  EXPECT_EQ(sink_.accepted.request_id, "r1");
  EXPECT_EQ(sink_.accepted.model, "tiny");
  EXPECT_EQ(sink_.accepted.seed, 7);
  EXPECT_EQ(sink_.texts[0], "hé!");
  EXPECT_EQ(sink_.deltas[0].text, "h");
  EXPECT_EQ(sink_.token_ids[0].size(), 4);
  ASSERT_EQ(sink_.finishes.size(), 1);
  EXPECT_EQ(sink_.finishes[0].reason, v1::STOP);
  EXPECT_EQ(sink_.finishes[0].stop_token_id, 257);
  EXPECT_EQ(sink_.finishes[0].usage.cached_tokens(), 2);
  EXPECT_EQ(answer_.summary().usage.completion_tokens(), 4);
  EXPECT_EQ(answer_.summary().timing.first_token_us(), 9);
}

TEST_F(AnswerTest, AStopStringEndsOneChoiceAndLeavesTheOther) {
  spec_.sampling.set_n(2);
  spec_.stop = {"\n\n"};
  ASSERT_TRUE(Add(Delta(0, "one\n")).ok());
  ASSERT_TRUE(Add(Delta(1, "other")).ok());
  EXPECT_TRUE(stopped_.empty());
  ASSERT_TRUE(Add(Delta(0, "\nrest")).ok());
  EXPECT_EQ(stopped_, std::vector<uint32_t>{0});
  // The worker's steps before the abort reached it.
  ASSERT_TRUE(Add(Delta(0, "more")).ok());
  EXPECT_EQ(stopped_.size(), 1);
  ASSERT_TRUE(Add(Message("finish { index: 0 reason: ABORTED usage { "
                          "completion_tokens: 13 cached_tokens: 3 } }"))
                  .ok());
  ASSERT_TRUE(Add(Delta(1, "!")).ok());
  ASSERT_TRUE(Add(Message("finish { index: 1 reason: LENGTH }")).ok());
  ASSERT_TRUE(Add(Message("summary { usage { completion_tokens: 19 } }")).ok());

  EXPECT_EQ(sink_.texts[0], "one");
  EXPECT_EQ(sink_.token_ids[0].size(), 5);
  EXPECT_EQ(sink_.texts[1], "other!");
  EXPECT_EQ(sink_.finishes[0].reason, v1::STOP);
  EXPECT_EQ(sink_.finishes[0].stop_string, "\n\n");
  EXPECT_EQ(sink_.finishes[0].usage.completion_tokens(), 5);
  EXPECT_EQ(sink_.finishes[0].usage.cached_tokens(), 3);
  EXPECT_EQ(sink_.finishes[1].reason, v1::LENGTH);
  EXPECT_EQ(answer_.summary().usage.completion_tokens(), 11);
}

TEST_F(AnswerTest, TextThatLookedLikeAStopStringIsShownAtTheEnd) {
  spec_.stop = {"STOP"};
  ASSERT_TRUE(Add(Delta(0, "no STO")).ok());
  EXPECT_EQ(sink_.texts[0], "no ");
  ASSERT_TRUE(Add(Message("finish { reason: LENGTH }")).ok());
  EXPECT_EQ(sink_.texts[0], "no STO");
  EXPECT_EQ(sink_.finishes[0].reason, v1::LENGTH);
  EXPECT_FALSE(sink_.finishes[0].stop_string.has_value());
}

TEST_F(AnswerTest, LogprobsHaveTheTextOfEachId) {
  v1::WorkerGenerateResponse message = Delta(0, "a");
  ASSERT_TRUE(google::protobuf::TextFormat::MergeFromString(
      "delta { logprobs { token { token_id: 97 logprob: -0.5 rank: 1 } "
      "top { token_id: 97 } top { token_id: 258 } top { token_id: 195 } "
      "top { token_id: 400 } } "
      "prompt_logprobs { token { token_id: 98 } } }",
      &message));
  ASSERT_TRUE(Add(message).ok());
  const DeltaEvent& delta = sink_.deltas[0];
  EXPECT_EQ(delta.logprobs[0].token().text(), "a");
  EXPECT_EQ(delta.logprobs[0].token().logprob(), -0.5f);
  EXPECT_EQ(delta.logprobs[0].top(1).text(), "<tool>");
  EXPECT_EQ(delta.logprobs[0].top(2).text(), "\xef\xbf\xbd");
  EXPECT_TRUE(delta.logprobs[0].top(3).has_text());
  EXPECT_EQ(delta.logprobs[0].top(3).text(), "");
  EXPECT_EQ(delta.prompt_logprobs[0].token().text(), "b");
}

TEST_F(AnswerTest, PromptLogprobsComeInParts) {
  for (int part = 0; part < 3; ++part) {
    ASSERT_TRUE(Add(Message("delta { prompt_logprobs { token { token_id: 97 } "
                            "} prompt_logprobs { token { token_id: 98 } } }"))
                    .ok());
  }
  ASSERT_TRUE(Add(Delta(0, "c")).ok());
  ASSERT_EQ(sink_.deltas.size(), 4);
  EXPECT_EQ(sink_.deltas[2].prompt_logprobs[1].token().text(), "b");
  EXPECT_TRUE(sink_.deltas[2].token_ids.empty());
  EXPECT_EQ(sink_.texts[0], "c");
}

// Decoders drop the space before the first word of a text.
TEST(AnswerLogprobs, KeepTheSpaceOfAToken) {
  class Spaced : public FakeTokenizer {
   public:
    Spaced() : vocabulary_(Vocabulary::Join::kByteFallback, 1) {
      vocabulary_.Add(" the", Vocabulary::Kind::kText);
      vocabulary_.Add("\xc3", Vocabulary::Kind::kByte);
    }
    const Vocabulary& vocabulary() const override { return vocabulary_; }

   private:
    Vocabulary vocabulary_;
  };
  const Spaced tokenizer;
  const GenerateSpec spec;
  RecordingSink sink;
  std::vector<uint32_t> stopped;
  Answer answer(&spec, &tokenizer, &sink);
  ASSERT_TRUE(answer
                  .Add(Message("delta { prompt_logprobs { token { token_id: 0 }"
                               " top { token_id: 1 } } }"),
                       &stopped)
                  .ok());
  EXPECT_EQ(sink.deltas[0].prompt_logprobs[0].token().text(), " the");
  EXPECT_EQ(sink.deltas[0].prompt_logprobs[0].top(0).text(), "\xef\xbf\xbd");
}

TEST_F(AnswerTest, LogprobsEndWithTheTokens) {
  spec_.stop = {"b"};
  v1::WorkerGenerateResponse message = Delta(0, "abc");
  for (int i = 0; i < 3; ++i) message.mutable_delta()->add_logprobs();
  ASSERT_TRUE(Add(message).ok());
  EXPECT_EQ(sink_.deltas[0].token_ids.size(), 2);
  EXPECT_EQ(sink_.deltas[0].logprobs.size(), 2);
}

TEST_F(AnswerTest, AWorkerThatBreaksTheProtocolIsInternal) {
  const struct {
    std::vector<v1::WorkerGenerateResponse> messages;
    std::string error;
  } kCases[] = {
      {{Message("")}, "the worker sent an event of unknown kind."},
      {{Delta(1, "a")}, "the worker answered choice 1 of 1."},
      {{Message("finish {}"), Delta(0, "a")},
       "the worker went on with choice 0 after its finish."},
      {{Message("accepted {}"), Message("accepted {}")},
       "the worker accepted the request twice."},
      {{Message("summary {}")},
       "the worker ended the answer with 0 of 1 choices finished."},
      {{Message("finish {}"), Message("summary {}"), Delta(0, "a")},
       "the worker went on after its summary."},
  };
  for (const auto& c : kCases) {
    Answer answer(&spec_, &tokenizer_, &sink_);
    absl::Status status;
    for (const auto& message : c.messages) {
      ASSERT_TRUE(status.ok());
      status = answer.Add(message, &stopped_);
    }
    EXPECT_EQ(status, absl::InternalError(c.error));
  }
}

TEST_F(AnswerTest, AnEmbeddingIsHandedOnAsItIs) {
  spec_.embedding.emplace();
  ASSERT_TRUE(Add(Message("accepted { prompt_tokens: 5 }")).ok());
  ASSERT_TRUE(Add(Message("embedding { values: [0.25, -1] }")).ok());
  ASSERT_TRUE(Add(Message("summary { usage { prompt_tokens: 5 } }")).ok());
  EXPECT_TRUE(answer_.complete());
  ASSERT_TRUE(sink_.embedding.has_value());
  EXPECT_EQ(sink_.embedding->values_size(), 2);
  EXPECT_EQ(answer_.summary().usage.prompt_tokens(), 5);
}

TEST_F(AnswerTest, AnEmbeddingNobodyAskedForOrATwinOfItIsRefused) {
  const auto embedding = Message("embedding { values: 1 }");
  EXPECT_TRUE(absl::IsInternal(Add(embedding)));
  spec_.embedding.emplace();
  EXPECT_TRUE(Add(embedding).ok());
  EXPECT_TRUE(absl::IsInternal(Add(embedding)));
}

TEST_F(AnswerTest, AnEndWithoutTheEmbeddingIsRefused) {
  spec_.embedding.emplace();
  EXPECT_TRUE(absl::IsInternal(Add(Message("summary {}"))));
}

}  // namespace
}  // namespace lockstep
