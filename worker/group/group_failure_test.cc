#include "worker/group/group_failure.h"

#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

namespace lockstep {
namespace {

using ::testing::ElementsAre;

GroupFailure::Options Patient() {
  return {.exit_within = absl::InfiniteDuration(), .last_resort = nullptr};
}

TEST(GroupFailure, KeepsTheFirstCauseAndRunsTheHooksOnceInOrder) {
  GroupFailure failure(Patient());
  std::vector<std::string> calls;
  failure.OnFailure([&](const auto& cause) {
    calls.push_back("first: " + cause.ToString());
  });
  failure.OnFailure([&](const auto&) { calls.push_back("second"); });
  EXPECT_TRUE(failure.status().ok());

  failure.Report(1, "it left.");
  failure.Report(2, "its collective was aborted.");
  EXPECT_THAT(calls,
              ElementsAre("first: rank 1 failed first: it left.", "second"));
  EXPECT_EQ(failure.status(),
            absl::UnavailableError(
                "the worker group failed: rank 1 failed first: it left."));
}

TEST(GroupFailure, AHookThatComesLateRunsAtOnce) {
  GroupFailure failure(Patient());
  failure.Report(1, "it left.");
  int rank = -1;
  failure.OnFailure([&](const auto& cause) { rank = cause.rank; });
  EXPECT_EQ(rank, 1);
}

TEST(GroupFailure, AConsequenceWaitsForItsCause) {
  GroupFailure failure(Patient());
  std::thread consequence([&] {
    failure.ReportError(0, absl::UnavailableError("aborted."),
                        absl::InfiniteDuration());
  });
  failure.Report(2, "it left.");
  consequence.join();
  EXPECT_NE(failure.status().message().find("rank 2"), std::string::npos);
}

TEST(GroupFailure, AConsequenceWithoutACauseIsTheCause) {
  GroupFailure failure(Patient());
  failure.ReportError(0, absl::UnavailableError("aborted."),
                      absl::ZeroDuration());
  EXPECT_FALSE(failure.status().ok());
}

TEST(GroupFailure, AnErrorOfThisRanksOwnWaitsForNoOther) {
  GroupFailure failure(Patient());
  failure.ReportError(3, absl::InternalError("its device is gone."),
                      absl::InfiniteDuration());
  EXPECT_EQ(failure.status().message(),
            "the worker group failed: rank 3 failed first: its device is "
            "gone.");
}

TEST(GroupFailure, ReportsAfterDisarmHaveNoEffect) {
  GroupFailure failure(Patient());
  bool called = false;
  failure.OnFailure([&](const auto&) { called = true; });
  failure.Disarm();
  failure.Report(1, "it left.");
  EXPECT_FALSE(called);
  EXPECT_TRUE(failure.status().ok());
}

TEST(GroupFailure, EndsAProcessThatDoesNotLeave) {
  absl::Notification ended;
  GroupFailure failure({.exit_within = absl::Milliseconds(1),
                        .last_resort = [&] { ended.Notify(); }});
  failure.Report(1, "it left.");
  failure.Disarm();
  ended.WaitForNotification();
}

}  // namespace
}  // namespace lockstep
