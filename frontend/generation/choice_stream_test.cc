#include "frontend/generation/choice_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/testing/fake_tokenizer.h"

namespace lockstep {
namespace {

using ::testing::MatchesRegex;

constexpr char kCall[] =
    "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}}</tool_call>";

class ChoiceStreamTest : public testing::Test {
 protected:
  ChoiceStreamTest() {
    format_.output = {ToolFormat::kHermes, ReasoningFormat::kThink};
    chat_.messages = {{"user", "hi"}};
    chat_.tools = {{"f", "{}"}};
  }

  ChoiceStream Make(absl::string_view rendered = "") {
    reading_ = MakeChatReading(&format_, spec_, chat_, rendered);
    return ChoiceStream(&tokenizer_, spec_, &reading_);
  }

  // Adds a text, and finishes; all that came of it.
  OutputDelta Run(ChoiceStream* stream, const std::string& text) {
    std::vector<uint32_t> ids;
    for (const char byte : text) ids.push_back(static_cast<uint8_t>(byte));
    auto piece = stream->Add(ids);
    EXPECT_TRUE(piece.ok()) << piece.status();
    num_tokens_ = piece->num_tokens;
    OutputDelta output = std::move(piece->output);
    const auto rest = stream->Finish();
    EXPECT_TRUE(rest.ok()) << rest.status();
    output.content += rest->content;
    output.reasoning += rest->reasoning;
    for (const auto& call : rest->tool_calls) output.tool_calls.push_back(call);
    return output;
  }

  FakeTokenizer tokenizer_;
  GenerateSpec spec_;
  ChatPrompt chat_;
  ChatFormat format_;
  ChatReading reading_;
  size_t num_tokens_ = 0;
};

TEST_F(ChoiceStreamTest, ATextIsNotParsed) {
  ChoiceStream stream(&tokenizer_, spec_, nullptr);
  EXPECT_EQ(Run(&stream, kCall).content, kCall);
  EXPECT_FALSE(stream.has_whole_calls());
}

TEST_F(ChoiceStreamTest, AChatIs) {
  ChoiceStream stream = Make();
  const OutputDelta output =
      Run(&stream, std::string("<think>hm</think>So.") + kCall);
  EXPECT_EQ(output.reasoning, "hm");
  EXPECT_EQ(output.content, "So.");
  ASSERT_EQ(output.tool_calls.size(), 1);
  EXPECT_EQ(output.tool_calls[0].name, "f");
  EXPECT_EQ(output.tool_calls[0].arguments, "{\"a\": 1}");
  EXPECT_THAT(output.tool_calls[0].id, MatchesRegex("call_[0-9a-f]{16}"));
  EXPECT_TRUE(stream.has_whole_calls());
  EXPECT_FALSE(stream.has_ended());
}

TEST_F(ChoiceStreamTest, CountsTheTokensOfReasoning) {
  // From the '>' that opens to the '>' that closes.
  ChoiceStream stream = Make();
  Run(&stream, "<think>hm</think>So.");
  EXPECT_EQ(stream.num_reasoning_tokens(), 1 + 2 + 8);
  EXPECT_EQ(stream.num_tokens(), 20);
  ChoiceStream opened = Make("[assistant]<think>\n");
  EXPECT_EQ(Run(&opened, "hm</think>So.").reasoning, "hm");
  EXPECT_EQ(opened.num_reasoning_tokens(), 2 + 8);
}

TEST_F(ChoiceStreamTest, AMessageThatGoesOnMayBeWithinReasoning) {
  chat_.messages.push_back({"assistant", "<think>h"});
  chat_.continue_final_message = true;
  ChoiceStream stream = Make("[assistant]<think>h");
  EXPECT_EQ(Run(&stream, "m</think>So.").reasoning, "m");
}

TEST_F(ChoiceStreamTest, OneCallMayBeEnough) {
  spec_.parallel_tool_calls = false;
  ChoiceStream stream = Make();
  const OutputDelta output = Run(&stream, std::string(kCall) + kCall);
  EXPECT_EQ(output.tool_calls.size(), 1);
  EXPECT_TRUE(stream.has_ended());
  EXPECT_TRUE(stream.has_whole_calls());
  EXPECT_FALSE(stream.stop_string().has_value());
  // Up to the bracket that ends the arguments.
  EXPECT_EQ(num_tokens_, std::string(kCall).rfind("}}") + 1);
}

TEST_F(ChoiceStreamTest, ACallThatIsCutOffIsNotWhole) {
  ChoiceStream stream = Make();
  const OutputDelta output = Run(&stream, std::string(kCall).substr(0, 42));
  EXPECT_EQ(output.tool_calls[0].arguments, "{\"a\"");
  EXPECT_FALSE(stream.has_whole_calls());
}

TEST_F(ChoiceStreamTest, StopStringsAreLookedForInWhatTheModelWrites) {
  spec_.stop = {"\"a\""};
  ChoiceStream stream = Make();
  const OutputDelta output = Run(&stream, kCall);
  EXPECT_EQ(output.tool_calls[0].arguments, "{");
  EXPECT_EQ(stream.stop_string(), "\"a\"");
  EXPECT_FALSE(stream.has_whole_calls());
}

TEST_F(ChoiceStreamTest, MistralsIdsAreShort) {
  format_.output = {ToolFormat::kMistral, ReasoningFormat::kNone};
  ChoiceStream stream = Make();
  const OutputDelta output = Run(&stream, "[TOOL_CALLS]f[ARGS]{}");
  ASSERT_EQ(output.tool_calls.size(), 1);
  EXPECT_THAT(output.tool_calls[0].id, MatchesRegex("[0-9a-z]{9}"));
}

// A mark that is a special token is seen by the parser, and by it alone.
TEST_F(ChoiceStreamTest, MarksAreSeenWhereSpecialTokensAreSkipped) {
  class Special : public FakeTokenizer {
   public:
    Special() : vocabulary_(Vocabulary::Join::kByteLevel) {
      const Vocabulary& bytes = FakeTokenizer::vocabulary();
      for (uint32_t id = 0; id < kBos; ++id) {
        vocabulary_.Add(bytes.token(id).bytes, Vocabulary::Kind::kText);
      }
      for (const char* token : {"<bos>", "<eos>", "[TOOL_CALLS]"}) {
        vocabulary_.Add(token, Vocabulary::Kind::kText, /*special=*/true);
      }
    }
    const Vocabulary& vocabulary() const override { return vocabulary_; }

   private:
    Vocabulary vocabulary_;
  };
  const Special tokenizer;
  format_ =
      MakeChatFormat({ToolFormat::kMistral, ReasoningFormat::kNone}, tokenizer);
  reading_ = MakeChatReading(&format_, spec_, chat_, "");
  ChoiceStream stream(&tokenizer, spec_, &reading_);
  std::vector<uint32_t> ids = {'H', Special::kEos, 'i', Special::kTool, 'f'};
  for (const char byte : {'{', '}'}) ids.push_back(byte);
  const auto piece = stream.Add(ids);
  ASSERT_TRUE(piece.ok()) << piece.status();
  EXPECT_EQ(piece->output.content, "Hi");
  ASSERT_EQ(piece->output.tool_calls.size(), 1);
  EXPECT_EQ(piece->output.tool_calls[0].name, "f");
}

}  // namespace
}  // namespace lockstep
