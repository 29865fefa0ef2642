#include "worker/group/group_failure.h"

#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "tests/testing/ranks/hanging_log.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;

GroupFailure::Options Patient() {
  return {.exit_within = absl::InfiniteDuration(), .last_resort = nullptr};
}

GroupFailure::Cause CauseOf(int rank, const std::string& reason) {
  return {.rank = rank, .kind = v1::CONNECTION_LOST, .reason = reason};
}

TEST(GroupFailure, KeepsTheFirstCauseAndRunsTheHooksOnceInOrder) {
  GroupFailure failure(Patient());
  std::vector<std::string> calls;
  failure.OnFailure([&](const auto& cause) {
    calls.push_back("first: " + cause.ToString());
  });
  failure.OnFailure([&](const auto&) { calls.push_back("second"); });
  EXPECT_TRUE(failure.status().ok());
  EXPECT_FALSE(failure.cause().has_value());

  failure.Report(CauseOf(1, "it left."));
  failure.Report(CauseOf(2, "its collective was aborted."));
  EXPECT_THAT(calls,
              ElementsAre("first: rank 1 failed first: it left.", "second"));
  EXPECT_EQ(failure.status(),
            absl::UnavailableError(
                "the worker group failed: rank 1 failed first: it left."));
  EXPECT_EQ(failure.cause()->rank, 1);
  EXPECT_EQ(failure.cause()->kind, v1::CONNECTION_LOST);
}

// It goes to logs and to other ranks, whatever a library or a file had to say.
TEST(GroupFailure, AReasonIsALineOfBoundedLength) {
  GroupFailure failure(Patient());
  failure.Report(CauseOf(1, "two\nlines of \xff" + std::string(1 << 20, 'x')));
  EXPECT_EQ(failure.cause()->reason,
            "two lines of ?" + std::string((2 << 10) - 14, 'x'));
}

TEST(GroupFailure, AHookThatComesLateRunsAtOnce) {
  GroupFailure failure(Patient());
  failure.Report(CauseOf(1, "it left."));
  int rank = -1;
  failure.OnFailure([&](const auto& cause) { rank = cause.rank; });
  EXPECT_EQ(rank, 1);
}

// Who reports may be an I/O thread, which has yet to send the news.
TEST(GroupFailure, NobodyWhoReportsWaitsForTheLog) {
  GroupFailure failure(Patient());
  testing::HangingLog log;
  bool told = false;
  std::atomic<bool> logged = false;
  failure.OnFailure([&](const auto&) { told = true; });
  failure.OnVerdict([&](const auto& cause) { logged = cause.rank == 1; });
  failure.Report(CauseOf(1, "it left."));
  EXPECT_TRUE(told);
  log.hangs.WaitForNotification();
  failure.Report(CauseOf(2, "it left, too."));
  failure.OnFailure([](const auto&) {});
  EXPECT_FALSE(failure.status().ok());
  EXPECT_FALSE(logged);
  log.go_on.Notify();
  failure.Disarm();
  EXPECT_TRUE(logged);
}

TEST(GroupFailure, AConsequenceWaitsForItsCause) {
  GroupFailure failure(Patient());
  std::thread consequence([&] {
    failure.ReportError(0, v1::ENGINE_FAILED,
                        absl::UnavailableError("aborted."),
                        absl::InfiniteDuration());
  });
  failure.Report(CauseOf(2, "it left."));
  consequence.join();
  EXPECT_NE(failure.status().message().find("rank 2"), std::string::npos);
}

TEST(GroupFailure, AConsequenceWithoutACauseIsTheCause) {
  GroupFailure failure(Patient());
  failure.ReportError(0, v1::ENGINE_FAILED, absl::UnavailableError("aborted."),
                      absl::ZeroDuration());
  EXPECT_FALSE(failure.status().ok());
}

TEST(GroupFailure, AnErrorOfThisRanksOwnWaitsForNoOther) {
  GroupFailure failure(Patient());
  failure.ReportError(3, v1::ENGINE_FAILED,
                      absl::InternalError("its device is gone."),
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
  failure.Report(CauseOf(1, "it left."));
  EXPECT_FALSE(called);
  EXPECT_TRUE(failure.status().ok());
}

TEST(GroupFailure, BeforeItEndsAProcessItLetsItSpeak) {
  absl::Notification ended;
  std::vector<std::string> calls;
  GroupFailure failure(
      {.exit_within = absl::Milliseconds(1), .last_resort = [&] {
         calls.push_back("ended");
         ended.Notify();
       }});
  const GroupFailure::LastWords last_words(
      &failure, [&] { calls.push_back("last words"); });
  failure.Report(CauseOf(1, "it left."));
  failure.Disarm();
  ended.WaitForNotification();
  EXPECT_THAT(calls, ElementsAre("last words", "ended"));
}

TEST(GroupFailure, OneWhoHasLeftHasNoLastWords) {
  absl::Notification ended;
  bool called = false;
  GroupFailure failure({.exit_within = absl::Milliseconds(1),
                        .last_resort = [&] { ended.Notify(); }});
  {
    const GroupFailure::LastWords last_words(&failure, [&] { called = true; });
  }
  failure.Report(CauseOf(1, "it left."));
  ended.WaitForNotification();
  EXPECT_FALSE(called);
}

TEST(GroupFailure, EndsAProcessThatDoesNotLeave) {
  absl::Notification ended;
  GroupFailure failure({.exit_within = absl::Milliseconds(1),
                        .last_resort = [&] { ended.Notify(); }});
  failure.Report(CauseOf(1, "it left."));
  failure.Disarm();
  ended.WaitForNotification();
}

}  // namespace
}  // namespace lockstep
