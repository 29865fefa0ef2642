// Ranks as threads of one process, over loopback sockets: the leader's and the
// followers' sources, real schedulers, fake engines.

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "tests/testing/fake_engine.h"
#include "tests/testing/output_recorder.h"
#include "worker/group/follower_source.h"
#include "worker/group/leader_source.h"
#include "worker/runtime/rank_loop.h"
#include "worker/runtime/silent_sink.h"

namespace lockstep {
namespace {

using boost::asio::ip::tcp;
using ::testing::HasSubstr;

constexpr uint32_t kVocabulary = 1000;
const SchedulerOptions kScheduler = {.num_pages = 24,
                                     .page_size = 4,
                                     .max_step_tokens = 32,
                                     .max_sequences = 8,
                                     .max_logits_rows = 64,
                                     .max_context = 64};

const FakeEngine::Options kEngine = {.num_pages = kScheduler.num_pages,
                                     .page_size = kScheduler.page_size,
                                     .vocabulary_size = kVocabulary};
const GroupFailure::Options kPatient = {.exit_within = absl::InfiniteDuration(),
                                        .last_resort = nullptr};

// Lets a test change what a rank reads, or see when it does.
class TappedSource final : public FrameSource {
 public:
  explicit TappedSource(std::unique_ptr<FrameSource> source)
      : source_(std::move(source)) {}

  absl::Status Next(bool idle, Frame* frame) override {
    absl::Status status = source_->Next(idle, frame);
    if (status.ok() && tap) tap(*frame);
    return status;
  }
  absl::Status Agree(const Digest& digest) override {
    digests.push_back(digest);
    return source_->Agree(digest);
  }

  std::function<void(Frame&)> tap;
  std::vector<Digest> digests;

 private:
  const std::unique_ptr<FrameSource> source_;
};

struct ThreadRank {
  explicit ThreadRank(int rank)
      : rank(rank), failure(kPatient), engine(kEngine) {}

  void Start(OutputSink* sink,
             std::function<void(const SchedulerStats&)> on_step_end) {
    thread = std::thread([this, sink, on_step_end] {
      result = RunRankLoop({.rank = rank,
                            .scheduler = kScheduler,
                            .source = source.get(),
                            .engine = &engine,
                            .sink = sink,
                            .failure = &failure,
                            .step_timeout = step_timeout,
                            .on_step_end = on_step_end});
    });
  }

  const int rank;
  absl::Duration step_timeout = absl::InfiniteDuration();
  GroupFailure failure;
  FakeEngine engine;
  std::unique_ptr<TappedSource> source;
  std::thread thread;
  absl::Status result;
};

class Group {
 public:
  explicit Group(int size) {
    Membership leader;
    leader.epoch = 1;
    leader.io = std::make_unique<IoThread>();
    ranks.push_back(std::make_unique<ThreadRank>(0));
    for (int rank = 1; rank < size; ++rank) {
      ranks.push_back(std::make_unique<ThreadRank>(rank));
      leader.links.push_back(Connect(leader.io->context(), *ranks.back()));
    }
    auto source = std::make_unique<LeaderSource>(std::move(leader), &inbox,
                                                 &ranks[0]->failure);
    ranks[0]->failure.OnFailure(
        [this, source = source.get()](const auto& cause) {
          inbox.Close(ranks[0]->failure.status());
          source->TellFailure(cause);
        });
    ranks[0]->source = std::make_unique<TappedSource>(std::move(source));
  }

  ~Group() {
    for (auto& rank : ranks) rank->failure.Disarm();
  }

  void Start() {
    ranks[0]->Start(&outputs, [this](const SchedulerStats& stats) {
      leader_stats = stats;
      if (stop_when_all_ended_ && HaveAllEnded()) inbox.Stop();
    });
    for (size_t i = 1; i < ranks.size(); ++i) ranks[i]->Start(&silent_, {});
  }

  // After the last Add.
  void StopWhenAllEnded() {
    stop_when_all_ended_ = true;
    Abort(/*number=*/0);  // of nobody: an idle group makes one more step
  }

  // Until every rank's loop has ended.
  void Join() {
    for (auto& rank : ranks) rank->thread.join();
  }

  void Add(uint64_t number, std::vector<uint32_t> prompt, uint32_t max_tokens) {
    v1::AddRequest add;
    add.set_request(number);
    add.mutable_prompt_token_ids()->Assign(prompt.begin(), prompt.end());
    v1::ResolvedSampling& sampling = *add.mutable_sampling();
    sampling.set_top_p(1);
    sampling.set_repetition_penalty(1);
    sampling.set_max_tokens(max_tokens);
    sampling.set_n(1);
    requests.push_back(add);
    ASSERT_TRUE(inbox.Add(add).ok());
  }

  void Abort(uint64_t number) {
    v1::AbortSequences abort;
    abort.set_request(number);
    inbox.Abort(abort);
  }

  std::vector<std::unique_ptr<ThreadRank>> ranks;
  RequestInbox inbox{
      {.max_queued_requests = 1000, .max_queued_tokens = 100'000}};
  std::vector<v1::AddRequest> requests;
  // The leader's; of its step thread until Join.
  OutputRecorder outputs;
  SchedulerStats leader_stats;

 private:
  bool HaveAllEnded() {
    return std::all_of(requests.begin(), requests.end(), [&](const auto& add) {
      return outputs.finished({.request = add.request()});
    });
  }

  // Gives `follower` its source; returns the leader's end.
  static tcp::socket Connect(boost::asio::io_context& leader,
                             ThreadRank& follower) {
    Membership membership;
    membership.epoch = 1;
    membership.io = std::make_unique<IoThread>();
    tcp::acceptor acceptor(
        leader, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    tcp::socket socket(membership.io->context());
    socket.connect(acceptor.local_endpoint());
    membership.links.push_back(std::move(socket));
    auto source = std::make_unique<FollowerSource>(
        follower.rank, std::move(membership), &follower.failure,
        FollowerSource::Options());
    follower.failure.OnFailure([source = source.get()](const auto& cause) {
      source->TellFailure(cause);
    });
    follower.source = std::make_unique<TappedSource>(std::move(source));
    return acceptor.accept();
  }

  SilentSink silent_;
  std::atomic<bool> stop_when_all_ended_ = false;
};

TEST(Lockstep, AllRanksMakeTheSameOfRequestsAndAborts) {
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE(absl::StrCat("seed ", seed));
  std::mt19937_64 random(seed);
  Group group(3);
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
        ContinueAlone(request, 0, kScheduler.max_context, kVocabulary);
    const auto& output = group.outputs.of({.request = request.request()});
    EXPECT_EQ(output.tokens, alone.tokens) << request.request();
    EXPECT_EQ(output.reason, alone.reason) << request.request();
  }
}

TEST(Lockstep, ARankThatWasToldSomethingElseIsNamedBeforeItExecutes) {
  Group group(3);
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
  }
}

TEST(Lockstep, AnEngineThatBreaksEndsAllRanksAndIsNamed) {
  Group group(3);
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
  }
}

TEST(Lockstep, WhatEndedInAStepThatFailsIsToldAllTheSame) {
  Group group(2);
  group.ranks[0]->engine.set_before_step([](const StepPlan& plan) {
    return plan.step < 5 ? absl::OkStatus()
                         : absl::InternalError("the device is gone.");
  });
  group.Add(1, {1, 2, 3}, 50);
  group.Start();
  group.Join();
  EXPECT_EQ(group.leader_stats.step, 5);
}

// Wherever the leader hangs, its followers end: with its frame sent and its
// digest not, or while they wait for its next frame.
TEST(Lockstep, ALeaderThatHangsIsFoundByItsFollowers) {
  for (const bool in_plan : {true, false}) {
    Group group(2);
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
    group.ranks[0]->thread.join();
    EXPECT_THAT(
        std::string(group.ranks[1]->result.message()),
        HasSubstr(absl::StrCat("rank 1 failed first: step ", in_plan ? 1 : 2,
                               " takes longer than --step_timeout")));
    EXPECT_FALSE(group.ranks[0]->result.ok());
  }
}

TEST(Lockstep, AMessageThatIsNoneEndsTheGroup) {
  Group group(2);
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

}  // namespace
}  // namespace lockstep
