#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <vector>

#include "proto/group.pb.h"
#include "tests/testing/fake_engine.h"
#include "tests/testing/output_recorder.h"
#include "worker/engine/engine.h"
#include "worker/scheduler/scheduler.h"

namespace lockstep {

// A scheduler that runs on a fake engine, as the step loop would run it. Every
// step is checked: no error of the engine, no page lost or twice, limits kept.
//
//   SchedulerDriver driver({.num_pages = 8, .max_context = 32});
//   const uint64_t request = driver.Add(MakeRequest({1, 2, 3}, 8));
//   driver.RunUntilIdle();
//   driver.ExpectAsAlone(request);
class SchedulerDriver {
 public:
  static constexpr uint32_t kVocabularySize = 1000;

  explicit SchedulerDriver(const SchedulerOptions& options);
  // On another engine, which must outlive this; engine() does nothing.
  SchedulerDriver(const SchedulerOptions& options, Engine* engine);

  // Numbers the request, from 1, and gives it to the scheduler.
  uint64_t Add(v1::AddRequest request);
  void Abort(uint64_t request, std::vector<uint32_t> choices = {});

  // Plans and launches one step, and commits those that must be. The plan's
  // spans no longer point to sequences that have ended.
  StepPlan Step();
  // The same, where the engine may fail: its error, with what was told so far.
  absl::Status TryStep(StepPlan* plan);
  void RunUntilIdle();

  // Every choice of `request` that was not aborted got the tokens and the end
  // that it gets alone.
  void ExpectAsAlone(uint64_t request);
  void ExpectAllAsAlone();

  Scheduler& scheduler() { return scheduler_; }
  OutputRecorder& outputs() { return outputs_; }
  FakeEngine& engine() { return engine_; }
  const v1::AddRequest& request(uint64_t number) const {
    return requests_[number - 1];
  }
  uint64_t num_requests() const { return requests_.size(); }

 private:
  void CheckLimits(const StepPlan& plan);

  const SchedulerOptions options_;
  OutputRecorder outputs_;
  FakeEngine engine_;
  Engine& device_;  // engine_ or another one
  Scheduler scheduler_;
  StepResult result_;
  std::vector<v1::AddRequest> requests_;
};

// A request with neutral parameters and n = 1.
v1::AddRequest MakeRequest(std::vector<uint32_t> prompt, uint32_t max_tokens);

// Its prompt's embedding instead, of so many dimensions.
v1::AddRequest ToEmbed(v1::AddRequest request, v1::Pooling pooling,
                       uint32_t dimensions);

// `count` ids from `first` on.
std::vector<uint32_t> TokenRun(uint32_t first, int count);

}  // namespace lockstep
