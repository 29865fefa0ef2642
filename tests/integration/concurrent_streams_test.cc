// Streams that are served together get what each gets alone, over the real
// engine: mixed lengths and parameters, shared prefixes, several choices,
// aborts in every state, and pages so few that sequences are preempted.

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "proto/group.pb.h"
#include "tests/testing/engine_group.h"
#include "tests/testing/output_recorder.h"
#include "tests/testing/scheduler_driver.h"
#include "tests/testing/tiny_model.h"
#include "worker/core/step_result.h"
#include "worker/scheduler/scheduler.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

constexpr int kMaxContext = 256;
constexpr int kManyPages = 256;
constexpr int kFewPages = 24;  // one sequence of full length takes 16

// Two schedulers that are told the same, as two ranks are, over the engines of
// a group.
class Group {
 public:
  Group(const ModelFiles& model, int size, int num_pages)
      : options_{.num_pages = num_pages,
                 .page_size = 16,
                 .max_step_tokens = 48,
                 .max_sequences = 12,
                 .max_logits_rows = 16,
                 .max_context = kMaxContext},
        leader_(options_, &outputs_),
        follower_(options_, &follower_outputs_) {
    auto engine = testing::EngineGroup::Create(
        model, size,
        {.engine = {.num_pages = num_pages,
                    .page_size = options_.page_size,
                    .max_step_tokens = options_.max_step_tokens,
                    .max_sequences = options_.max_sequences,
                    .max_logits_rows = options_.max_logits_rows},
         .ranks = {}});
    EXPECT_TRUE(engine.ok()) << engine.status();
    engine_ = *std::move(engine);
  }

  void Apply(const v1::RankMessage& message) {
    EXPECT_TRUE(leader_.Apply(message).ok());
    EXPECT_TRUE(follower_.Apply(message).ok());
  }

  void Add(const v1::AddRequest& request) {
    v1::RankMessage message;
    *message.mutable_add() = request;
    Apply(message);
  }

  void Abort(uint64_t request) {
    v1::RankMessage message;
    message.mutable_abort()->set_request(request);
    Apply(message);
  }

  // False when there was nothing to do.
  bool Step() {
    if (!leader_.HasWork()) return false;
    const StepPlan& plan = leader_.Plan();
    EXPECT_EQ(follower_.Plan().digest, plan.digest) << "step " << plan.step;
    const absl::Status executed = engine_->Execute(plan, &result_);
    EXPECT_TRUE(executed.ok()) << executed;
    leader_.Commit(result_);
    follower_.Commit(result_);
    const absl::Status conserved = leader_.CheckConservation();
    EXPECT_TRUE(conserved.ok()) << conserved;
    return executed.ok();
  }

  void ExpectIdle() {
    const SchedulerStats stats = leader_.stats();
    EXPECT_EQ(stats.running_sequences, 0);
    EXPECT_EQ(stats.waiting_sequences, 0);
    EXPECT_EQ(stats.free_pages + stats.cached_pages, options_.num_pages);
  }

  const OutputRecorder::Record& of(uint64_t request, uint32_t choice = 0) {
    return outputs_.of({request, choice});
  }
  uint64_t preemptions() const { return leader_.stats().preemptions; }

 private:
  const SchedulerOptions options_;
  OutputRecorder outputs_;
  OutputRecorder follower_outputs_;
  Scheduler leader_;
  Scheduler follower_;
  std::unique_ptr<testing::EngineGroup> engine_;
  StepResult result_;
};

v1::AddRequest Request(uint64_t number, std::vector<uint32_t> prompt,
                       uint32_t max_tokens) {
  v1::AddRequest request = MakeRequest(std::move(prompt), max_tokens);
  request.set_request(number);
  request.mutable_sampling()->set_seed(1000 + number);
  request.mutable_sampling()->set_logprobs_plus_one(3);
  return request;
}

// Eight, whose parameters differ; the third to the fifth share a prefix of 60
// tokens. Even numbers are left for others.
std::vector<v1::AddRequest> Streams() {
  std::vector<v1::AddRequest> streams = {
      Request(1, TokenRun(10, 1), 90),    Request(3, TokenRun(30, 150), 60),
      Request(5, TokenRun(200, 60), 80),  Request(7, TokenRun(200, 77), 40),
      Request(9, TokenRun(200, 100), 50), Request(11, TokenRun(5, 33), 70),
      Request(13, TokenRun(90, 16), 100), Request(15, TokenRun(150, 200), 56),
  };
  for (const int greedy : {0, 3, 7}) {
    streams[greedy].mutable_sampling()->set_temperature(0);
  }
  streams[1].mutable_sampling()->set_top_k(20);
  streams[2].mutable_sampling()->set_top_p(0.9f);
  streams[4].mutable_sampling()->set_repetition_penalty(1.3f);
  streams[5].mutable_sampling()->set_frequency_penalty(0.5f);
  streams[6].mutable_sampling()->set_n(2);
  streams[7].mutable_sampling()->set_prompt_logprobs_plus_one(2);
  return streams;
}

std::string Text(const std::vector<v1::PositionLogprobs>& logprobs) {
  std::string text;  // floats as their bits
  for (const auto& position : logprobs) {
    absl::StrAppend(&text, position.SerializeAsString());
  }
  return text;
}

class ConcurrentStreams : public ::testing::TestWithParam<int> {
 protected:
  ConcurrentStreams() {
    testing::TinyModel tiny;
    tiny.architecture = "qwen3";
    const std::string folder = absl::StrCat(::testing::TempDir(), "model");
    testing::WriteHuggingFaceFolder(tiny, folder);
    auto model = OpenModel(folder);
    EXPECT_TRUE(model.ok()) << model.status();
    model_ = std::make_unique<ModelFiles>(*std::move(model));
  }

  // Each stream alone, on one rank, with pages to spare.
  void ExpectAsAlone(const v1::AddRequest& request, Group* together) {
    Group alone(*model_, 1, kManyPages);
    alone.Add(request);
    while (alone.Step()) {
    }
    for (uint32_t choice = 0; choice < request.sampling().n(); ++choice) {
      SCOPED_TRACE(
          absl::StrCat("request ", request.request(), ", choice ", choice));
      const auto& expected = alone.of(request.request(), choice);
      const auto& found = together->of(request.request(), choice);
      EXPECT_EQ(expected.tokens.size(), request.sampling().max_tokens());
      EXPECT_EQ(found.tokens, expected.tokens);
      EXPECT_EQ(Text(found.logprobs), Text(expected.logprobs));
      EXPECT_EQ(Text(found.prompt_logprobs), Text(expected.prompt_logprobs));
      EXPECT_EQ(found.reason, v1::LENGTH);
    }
  }

  std::unique_ptr<ModelFiles> model_;
};

TEST_P(ConcurrentStreams, GetWhatEachGetsAlone) {
  Group group(*model_, GetParam(), kFewPages);
  const std::vector<v1::AddRequest> streams = Streams();
  // Others come between them and are aborted later and later: before their
  // first step, amid their prompt, while they decode, after a preemption.
  std::vector<uint64_t> aborted;
  for (const v1::AddRequest& stream : streams) {
    group.Add(stream);
    const uint64_t other = stream.request() + 1;
    group.Add(Request(other, TokenRun(60, 130), 100));
    aborted.push_back(other);
    group.Step();
  }
  for (const uint64_t other : aborted) {
    group.Abort(other);
    for (int i = 0; i < 7; ++i) group.Step();
  }
  while (group.Step()) {
  }

  EXPECT_GT(group.preemptions(), 0);
  group.ExpectIdle();
  for (const uint64_t other : aborted) {
    EXPECT_EQ(group.of(other).reason, v1::ABORTED) << other;
  }
  for (const v1::AddRequest& stream : streams) ExpectAsAlone(stream, &group);
}

INSTANTIATE_TEST_SUITE_P(Ranks, ConcurrentStreams, ::testing::Values(1, 2));

}  // namespace
}  // namespace lockstep
