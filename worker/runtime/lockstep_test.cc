// Ranks as threads of one process, over loopback sockets: the leader's and the
// followers' sources, real schedulers, fake engines.

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/testing/ranks/hanging_log.h"
#include "tests/testing/ranks/thread_group.h"

namespace lockstep {
namespace {

using ::lockstep::testing::ThreadGroup;
using ::testing::HasSubstr;

// A step that hangs is found within a second; nobody is silent for so long.
constexpr PeerWatch::Options kWatch = {.interval = absl::Milliseconds(100),
                                       .timeout = absl::Seconds(60)};

TEST(Lockstep, AllRanksMakeTheSameOfRequestsAndAborts) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  ThreadGroup group(3);
  group.Start();
  std::set<uint64_t> aborted;
  for (uint64_t number = 1; number <= 100; ++number) {
    std::vector<uint32_t> prompt(1 + random() % 30);
    for (uint32_t& id : prompt) id = random() % 3;  // shared prefixes
    group.Add(number, prompt, 1 + random() % 30);
    if (random() % 4 == 0) {
      // Queued, in a chunk of its prompt, decoding or ended: as it happens.
      const uint64_t other = 1 + random() % number;
      aborted.insert(other);
      group.Abort(other);
    }
    for (uint64_t i = random() % 100; i > 0; --i) std::this_thread::yield();
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

TEST(Lockstep, ARankThatWasToldSomethingElseIsNamedBeforeItExecutes) {
  ThreadGroup group(3);
  bool rank_2_executed = false;
  group.ranks[2]->engine.set_before_step([&](const StepPlan&) {
    rank_2_executed = true;
    return absl::OkStatus();
  });
  group.ranks[2]->source->tap = [](Frame& frame) {
    for (std::string& bytes : frame.messages) {
      v1::RankMessage message;
      ASSERT_TRUE(message.ParseFromString(bytes));
      if (!message.has_add()) continue;
      // One bit of one id of the prompt: no plan shows it.
      message.mutable_add()->set_prompt_token_ids(
          3, message.add().prompt_token_ids(3) ^ 1);
      bytes = message.SerializeAsString();
    }
  };
  group.Add(1, {1, 2, 3, 4, 5}, 10);
  group.Start();
  group.Join();
  EXPECT_FALSE(rank_2_executed);
  for (const auto& rank : group.ranks) {
    EXPECT_EQ(rank->result.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(rank->result.message()),
                HasSubstr("rank 2 failed first: step 1 differs from the "
                          "leader's: expected digest "));
    EXPECT_EQ(rank->failure.cause()->kind, v1::DIGEST_MISMATCH);
  }
}

TEST(Lockstep, AnEngineThatBreaksEndsAllRanksAndIsNamed) {
  ThreadGroup group(3);
  group.ranks[1]->engine.set_before_step([](const StepPlan& plan) {
    return plan.step < 5 ? absl::OkStatus()
                         : absl::InternalError("the device is gone.");
  });
  group.Add(1, {1, 2, 3}, 50);
  group.Start();
  group.Join();
  for (const auto& rank : group.ranks) {
    EXPECT_EQ(rank->result,
              absl::UnavailableError("the worker group failed: rank 1 failed "
                                     "first: the device is gone."));
    EXPECT_EQ(rank->failure.cause()->kind, v1::ENGINE_FAILED);
  }
}

TEST(Lockstep, WhatEndedInAStepThatFailsIsToldAllTheSame) {
  ThreadGroup group(2);
  group.ranks[0]->engine.set_before_step([](const StepPlan& plan) {
    return plan.step < 5 ? absl::OkStatus()
                         : absl::InternalError("the device is gone.");
  });
  group.Add(1, {1, 2, 3}, 50);
  group.Start();
  group.Join();
  EXPECT_EQ(group.leader_stats.step, 5);
}

// Wherever the leader hangs, with its frame sent and its digest not, or while
// its followers wait for its next frame: they name it, whoever notices.
TEST(Lockstep, ALeaderThatHangsIsNamedByItsFollowers) {
  for (const bool in_plan : {true, false}) {
    ThreadGroup group(2, kWatch);
    absl::Notification follower_has_ended;
    group.ranks[1]->step_timeout = absl::Milliseconds(50);
    if (in_plan) {
      group.ranks[0]->source->tap = [&](Frame&) {
        follower_has_ended.WaitForNotification();
      };
    } else {
      group.ranks[0]->engine.set_before_step([&](const StepPlan&) {
        follower_has_ended.WaitForNotification();
        return absl::OkStatus();
      });
    }
    group.Add(1, {1, 2, 3}, 50);
    group.Start();
    group.ranks[1]->thread.join();
    follower_has_ended.Notify();
    group.Join();
    for (const auto& rank : group.ranks) {
      EXPECT_THAT(
          std::string(rank->result.message()),
          HasSubstr(absl::StrCat("rank 0 failed first: step ", in_plan ? 1 : 2,
                                 " exceeds its time limit")));
      EXPECT_EQ(rank->failure.cause()->kind, v1::STEP_OVERDUE);
    }
  }
}

// The leader's outputs go to nobody any more, alone, with followers that wait
// for its next frame, and at the end of the last request, when nobody does.
TEST(Lockstep, ALeaderWhoseOutputsNobodyTakesIsNamed) {
  for (const int size : {1, 3}) {
    for (const uint64_t last : {2, 50}) {
      ThreadGroup group(size, kWatch);
      absl::Notification failed;
      group.ranks[0]->step_timeout = absl::Milliseconds(500);
      group.at_step_end = [&] {
        if (group.leader_stats.step == 2) failed.WaitForNotification();
      };
      group.ranks[0]->failure.OnFailure([&](const auto&) { failed.Notify(); });
      group.Add(1, {1, 2, 3}, last);
      group.Start();
      group.Join();
      for (const auto& rank : group.ranks) {
        EXPECT_THAT(std::string(rank->result.message()),
                    HasSubstr("rank 0 failed first: step 2 exceeds its time "
                              "limit"));
        EXPECT_EQ(rank->failure.cause()->kind, v1::STEP_OVERDUE);
      }
    }
  }
}

// Alone, and in a group that heartbeats tell.
TEST(Lockstep, AnOverdueStepIsToldThoughNobodyReadsTheLog) {
  for (const int size : {1, 3}) {
    ThreadGroup group(size, kWatch);
    testing::HangingLog log;
    absl::Notification failed;
    group.ranks[0]->step_timeout = absl::Milliseconds(50);
    group.at_step_end = [&] {
      if (group.leader_stats.step == 2) failed.WaitForNotification();
    };
    group.ranks[0]->failure.OnFailure([&](const auto&) {
      failed.Notify();
      log.go_on.Notify();
    });
    group.Add(1, {1, 2, 3}, 50);
    group.Start();
    group.Join();
    EXPECT_EQ(group.ranks[0]->failure.cause()->kind, v1::STEP_OVERDUE);
    EXPECT_TRUE(log.hangs.HasBeenNotified());
  }
}

// Rank 2 hangs; the leader and rank 1 wait for it in a collective, and either
// may notice first.
TEST(Lockstep, AFollowerThatHangsIsNamedWhoeverNotices) {
  for (const int noticing : {0, 1, 2}) {
    ThreadGroup group(3, kWatch);
    absl::Notification failed;
    for (const auto& rank : group.ranks) {
      rank->engine.set_before_step([&](const StepPlan& plan) {
        if (plan.step == 3) failed.WaitForNotification();
        return absl::OkStatus();
      });
      rank->progress->CountCollectives(
          [number = rank->rank] { return number == 2 ? 6 : 7; });
    }
    group.ranks[noticing]->step_timeout = absl::Milliseconds(50);
    group.ranks[0]->failure.OnFailure([&](const auto&) { failed.Notify(); });
    group.Add(1, {1, 2, 3}, 50);
    group.Start();
    group.Join();
    for (const auto& rank : group.ranks) {
      EXPECT_THAT(
          std::string(rank->result.message()),
          HasSubstr("rank 2 failed first: step 3 exceeds its time limit, and "
                    "this rank is the one that the others wait for: it is in "
                    "step 3 at EXECUTES after 6 collectives."));
    }
  }
}

// A rank whose step thread hangs while the leader has gone on, to idle or to
// steps without a plan.
TEST(Lockstep, AFollowerThatLagsIsNamedWithItsLastStep) {
  ThreadGroup group(
      2, {.interval = absl::Milliseconds(50), .timeout = absl::Seconds(1)});
  absl::Notification failed;
  group.ranks[1]->engine.set_before_step([&](const StepPlan& plan) {
    if (plan.step == 2) failed.WaitForNotification();
    return absl::OkStatus();
  });
  group.ranks[0]->failure.OnFailure([&](const auto&) { failed.Notify(); });
  group.Add(1, {1, 2, 3}, 2);
  group.Start();
  group.Join();
  for (const auto& rank : group.ranks) {
    EXPECT_THAT(std::string(rank->result.message()),
                HasSubstr("rank 1 failed first: its last finished step is 1; "
                          "the leader finished step 2 more than 1s ago."));
    EXPECT_EQ(rank->failure.cause()->kind, v1::TOO_FAR_BEHIND);
  }
}

TEST(Lockstep, AMessageThatIsNoneEndsTheGroup) {
  ThreadGroup group(2);
  group.ranks[1]->source->tap = [](Frame& frame) {
    for (std::string& bytes : frame.messages) bytes = "\xff";
  };
  group.Add(1, {1, 2, 3}, 5);
  group.Start();
  group.Join();
  EXPECT_THAT(std::string(group.ranks[0]->result.message()),
              HasSubstr("rank 1 failed first: step 1 has a message of 1 bytes "
                        "that is none."));
}

TEST(Lockstep, AMessageThatComesTwiceEndsTheGroup) {
  ThreadGroup group(2);
  group.ranks[1]->source->tap = [](Frame& frame) {
    const std::vector<std::string> messages = frame.messages;
    frame.messages.insert(frame.messages.end(), messages.begin(),
                          messages.end());
  };
  group.Add(1, {1, 2, 3}, 5);
  group.Start();
  group.Join();
  EXPECT_THAT(std::string(group.ranks[0]->result.message()),
              HasSubstr("rank 1 failed first: step 1 has a message that no "
                        "leader sends: request 1 comes after request 1"));
}

}  // namespace
}  // namespace lockstep
