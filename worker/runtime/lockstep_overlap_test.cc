// Ranks as threads, each with a device that works beside it on a thread of its
// own and has two steps in flight.

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "common/status_macros.h"
#include "tests/testing/async_device/async_engine.h"
#include "tests/testing/fake_engine.h"
#include "tests/testing/ranks/thread_group.h"
#include "worker/engine/engine.h"

namespace lockstep {
namespace {

using ::lockstep::testing::AsyncEngine;
using ::lockstep::testing::ThreadGroup;
using ::testing::HasSubstr;

std::unique_ptr<AsyncEngine> MakeDevice(uint64_t seed) {
  return std::make_unique<AsyncEngine>(
      AsyncEngine::Options{.num_pages = ThreadGroup::kScheduler.num_pages,
                           .page_size = ThreadGroup::kScheduler.page_size,
                           .vocabulary_size = ThreadGroup::kVocabulary,
                           .has_thread = true},
      [random = std::minstd_rand(seed)](size_t n) mutable {
        return random() % n;
      });
}

// Fails in step `step`.
class BrokenDevice final : public Engine {
 public:
  BrokenDevice(uint64_t step, bool in_launch)
      : step_(step), in_launch_(in_launch) {}

  int max_steps_in_flight() const override { return 2; }

  absl::Status Launch(const StepPlan& plan) override {
    if (in_launch_) LOCKSTEP_RETURN_IF_ERROR(Fail(plan.step));
    return device_->Launch(plan);
  }
  absl::Status Retire(StepResult* result) override {
    if (!in_launch_) LOCKSTEP_RETURN_IF_ERROR(Fail(++retired_));
    return device_->Retire(result);
  }

 private:
  absl::Status Fail(uint64_t step) const {
    return step < step_ ? absl::OkStatus()
                        : absl::InternalError("the device is gone.");
  }

  const uint64_t step_;
  const bool in_launch_;
  const std::unique_ptr<Engine> device_ = MakeDevice(1);
  uint64_t retired_ = 0;
};

// Of three ranks.
void StartWithDevices(ThreadGroup& group, uint64_t seed) {
  for (const auto& rank : group.ranks) {
    rank->scheduler.steps_in_flight = 2;
    if (rank->device == nullptr) rank->device = MakeDevice(seed + rank->rank);
  }
  group.Start();
}

TEST(LockstepOverlap, AllRanksMakeTheSameOfRequestsAndAborts) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  ThreadGroup group(3);
  StartWithDevices(group, seed);
  std::set<uint64_t> aborted;
  for (uint64_t number = 1; number <= 60; ++number) {
    std::vector<uint32_t> prompt(1 + random() % 30);
    for (uint32_t& id : prompt) id = random() % 3;  // shared prefixes
    group.Add(number, prompt, 1 + random() % 30);
    if (random() % 4 != 0) continue;
    const uint64_t other = 1 + random() % number;
    aborted.insert(other);
    group.Abort(other);
  }
  group.StopWhenAllEnded();
  group.Join();
  for (const auto& rank : group.ranks) {
    EXPECT_TRUE(rank->result.ok()) << rank->result;
    EXPECT_EQ(rank->source->digests, group.ranks[0]->source->digests);
  }
  const SchedulerStats& stats = group.leader_stats;
  EXPECT_EQ(stats.free_pages + stats.cached_pages, stats.total_pages);
  for (const v1::AddRequest& request : group.requests) {
    if (aborted.contains(request.request())) continue;
    const FakeOutput alone =
        ContinueAlone(request, 0, ThreadGroup::kScheduler.max_context,
                      ThreadGroup::kVocabulary);
    const auto& output = group.outputs.of({.request = request.request()});
    EXPECT_EQ(output.tokens, alone.tokens) << request.request();
    EXPECT_EQ(output.reason, alone.reason) << request.request();
  }
}

TEST(LockstepOverlap, AnErrorNamesItsStep) {
  for (const bool in_launch : {true, false}) {
    ThreadGroup group(3);
    group.ranks[1]->device =
        std::make_unique<BrokenDevice>(/*step=*/5, in_launch);
    group.Add(1, {1, 2, 3}, 50);
    StartWithDevices(group, /*seed=*/1);
    group.Join();
    const std::string error = absl::StrCat(
        "rank 1 failed first: ", in_launch ? "" : "step 5, in flight: ",
        "the device is gone.");
    for (const auto& rank : group.ranks) {
      EXPECT_THAT(std::string(rank->result.message()), HasSubstr(error));
      EXPECT_EQ(rank->failure.cause()->kind, v1::ENGINE_FAILED);
    }
  }
}

}  // namespace
}  // namespace lockstep
