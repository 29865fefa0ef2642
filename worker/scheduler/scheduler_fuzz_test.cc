#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "proto/group.pb.h"
#include "tests/testing/fake_engine.h"
#include "worker/core/output_sink.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/scheduler/scheduler.h"

namespace {

using lockstep::SequenceId;
namespace v1 = lockstep::v1;

const lockstep::SchedulerOptions kOptions = {.num_pages = 12,
                                             .page_size = 4,
                                             .max_step_tokens = 12,
                                             .max_sequences = 3,
                                             .max_logits_rows = 4,
                                             .max_context = 40};

void Require(bool holds) {
  if (!holds) __builtin_trap();
}

// Every sequence ends once.
class CountingSink final : public lockstep::OutputSink {
 public:
  void OnFirstScheduled(SequenceId, int) override {}
  void OnPromptLogprobs(SequenceId,
                        std::vector<v1::PositionLogprobs>) override {}
  void OnToken(SequenceId id, uint32_t,
               std::vector<v1::PositionLogprobs>) override {
    Require(!ended_[id]);
  }
  void OnFinish(SequenceId id, v1::FinishReason,
                std::optional<uint32_t>) override {
    Require(!ended_[id]);
    ended_[id] = true;
    ++num_ended;
  }

  uint64_t num_ended = 0;

 private:
  std::map<SequenceId, bool> ended_;
};

class Rank {
 public:
  void Apply(const v1::RankMessage& message) {
    const bool applied = scheduler_.Apply(message).ok();
    if (message.has_add() && applied)
      num_added_ += message.add().sampling().n();
  }

  void Step() {
    const lockstep::StepPlan& plan = scheduler_.Plan();
    Require(plan.num_tokens <= kOptions.max_step_tokens);
    Require(plan.num_logits_rows <= kOptions.max_logits_rows);
    Require(engine_.Execute(plan, &result_).ok());
    scheduler_.Commit(result_);
    Require(scheduler_.CheckConservation().ok());
  }

  void RunToTheEnd() {
    while (scheduler_.HasWork()) Step();
    Require(sink_.num_ended == num_added_);
  }

 private:
  CountingSink sink_;
  lockstep::Scheduler scheduler_{kOptions, &sink_};
  lockstep::FakeEngine engine_{{.num_pages = kOptions.num_pages,
                                .page_size = kOptions.page_size,
                                .vocabulary_size = 100}};
  lockstep::StepResult result_;
  uint64_t num_added_ = 0;
};

// What the engine would report of each position is not the scheduler's.
bool WantsTooMuch(const v1::RankMessage& message) {
  const v1::ResolvedSampling& sampling = message.add().sampling();
  return sampling.logprobs_plus_one() > 21 ||
         sampling.prompt_logprobs_plus_one() > 21;
}

}  // namespace

// Runs of bytes, each behind a byte with its size, are the messages of one
// group; an empty run ends a step. Whatever they are, a message is refused or
// works, no page is lost, and every sequence that came ends once.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int kMostSteps = 200;
  absl::string_view rest(reinterpret_cast<const char*>(data), size);
  Rank rank;
  int steps = 0;
  while (!rest.empty() && steps < kMostSteps) {
    const size_t run = static_cast<uint8_t>(rest.front());
    rest.remove_prefix(1);
    if (run == 0) {
      rank.Step();
      ++steps;
      continue;
    }
    const absl::string_view bytes = rest.substr(0, run);
    rest.remove_prefix(bytes.size());
    v1::RankMessage message;
    if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
      continue;
    }
    if (!WantsTooMuch(message)) rank.Apply(message);
  }
  rank.RunToTheEnd();
  return 0;
}
