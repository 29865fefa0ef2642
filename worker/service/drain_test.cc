#include "worker/service/drain.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "common/error_reason.h"
#include "tests/testing/ranks/hanging_log.h"
#include "tests/testing/router_step.h"

namespace lockstep {
namespace {

class DrainTest : public ::testing::Test {
 protected:
  DrainTest() { admission_.Open(); }

  // The kinds of the messages that wait, as letters: add, abort (x), stop.
  std::string Drained() {
    std::vector<std::string> messages;
    EXPECT_TRUE(inbox_.Drain(/*idle=*/false, 1000, &messages).ok());
    std::string kinds;
    for (const std::string& bytes : messages) {
      v1::RankMessage message;
      EXPECT_TRUE(message.ParseFromString(bytes));
      kinds += message.has_add() ? 'a' : message.has_abort() ? 'x' : 's';
    }
    return kinds;
  }

  void Finish(uint64_t request, v1::FinishReason reason) {
    router_.OnFinish({.request = request}, reason, std::nullopt);
    testing::EndStepAndWait(router_);
  }

  RequestInbox inbox_{{.max_queued_requests = 10, .max_queued_tokens = 100}};
  OutputRouter router_{&inbox_};
  Drain drain_{&admission_, &router_, &inbox_};
  Admission admission_{&inbox_, &router_, Admission::Options()};
};

TEST_F(DrainTest, AnIdleGroupStopsAtOnce) {
  drain_.Begin();
  EXPECT_EQ(admission_.state(), v1::STOPPING);
  EXPECT_EQ(ErrorReasonOf(admission_.Submit("", {}).status()),
            "WORKER_DRAINING");
  EXPECT_EQ(Drained(), "s");
}

TEST_F(DrainTest, ItBeginsThoughNobodyReadsTheLog) {
  testing::HangingLog log;
  std::thread call([&] { drain_.Pause(std::nullopt); });
  log.hangs.WaitForNotification();
  drain_.Begin();
  EXPECT_EQ(Drained(), "s");
  log.go_on.Notify();
  call.join();
  drain_.LogBegin();
}

TEST_F(DrainTest, TheStopComesAfterTheLastRequest) {
  const auto one = *admission_.Submit("", {});
  const auto two = *admission_.Submit("", {});
  drain_.Begin();
  Finish(1, v1::STOP);
  EXPECT_EQ(Drained(), "aa");
  Finish(2, v1::LENGTH);
  EXPECT_EQ(Drained(), "s");
  EXPECT_TRUE(one->status().ok());
  EXPECT_TRUE(two->status().ok());
}

TEST_F(DrainTest, HurryEndsTheCallOfAnEndedRequestTooSoThatNobodyWaits) {
  const auto stream = *admission_.Submit("", {});
  drain_.Begin();
  Finish(1, v1::STOP);  // its client has not read it
  drain_.Hurry();
  admission_.WaitForCalls();
  EXPECT_EQ(stream->status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Drained(), "as");
}

TEST_F(DrainTest, HurryEndsWhatIsLive) {
  const auto stream = *admission_.Submit("", {});
  drain_.Begin();
  drain_.Hurry();
  EXPECT_EQ(ErrorReasonOf(stream->status()), "WORKER_STOPPED");
  EXPECT_EQ(Drained(), "ax");
  Finish(1, v1::ABORTED);
  EXPECT_EQ(Drained(), "s");
}

// Steps that end a request as soon as they are told of an abort, while whoever
// aborts it is stopped, and a reader that takes at once all there is. All of it
// is on one core, where an idle thread yields to one that wakes.
class EagerSteps {
 public:
  explicit EagerSteps(RequestInbox* inbox)
      : inbox_(inbox), thread_([this] { Run(); }) {}
  ~EagerSteps() { thread_.join(); }

  // Returns when the abort that `end` makes has come.
  void Expect(OutputStream& stream, const std::function<void()>& end) {
    Round round{.stream = &stream};
    round_ = &round;
    std::thread idle([&] {
      StayOnOneCore();
      const sched_param none = {};
      EXPECT_EQ(sched_setscheduler(0, SCHED_IDLE, &none), 0);
      end();
    });
    round.has_ended.WaitForNotification();
    idle.join();
  }

  int num_summaries() const { return num_summaries_; }

 private:
  struct Round {
    OutputStream* stream;
    absl::Notification has_ended = {};
  };

  void StayOnOneCore() const {
    cpu_set_t cores;
    CPU_ZERO(&cores);
    CPU_SET(core_, &cores);
    EXPECT_EQ(sched_setaffinity(0, sizeof(cores), &cores), 0);
  }

  void Run() {
    StayOnOneCore();
    while (true) {
      std::vector<std::string> messages;
      EXPECT_TRUE(inbox_->Drain(/*idle=*/true, 1, &messages).ok());
      v1::RankMessage message;
      EXPECT_TRUE(message.ParseFromString(messages[0]));
      if (message.has_stop()) return;
      if (message.has_abort()) EndStream(*round_);
    }
  }

  void EndStream(Round& round) {
    round.stream->OnFinish(0, v1::ABORTED, std::nullopt);
    v1::WorkerGenerateResponse message;
    while (round.stream->Take(&message) == OutputStream::Next::kMessage) {
      num_summaries_ += message.has_summary();
    }
    round.has_ended.Notify();
  }

  RequestInbox* const inbox_;
  const int core_ = sched_getcpu();
  std::atomic<Round*> round_ = nullptr;
  std::atomic<int> num_summaries_ = 0;
  std::thread thread_;
};

// Its client would take what it has for the whole answer.
TEST_F(DrainTest, AStreamThatEndsEarlyHasNoSummaryHoweverFastTheStepIs) {
  const std::function<void(OutputStream&)> kEnds[] = {
      [this](OutputStream&) { drain_.Hurry(); },
      [this](OutputStream& stream) { admission_.Expire(stream); },
      [this](OutputStream& stream) {
        admission_.End(stream, v1::CLIENT_CANCELLED, absl::CancelledError(""));
      },
      [this](OutputStream& stream) {
        router_.EndEarly(stream, v1::SLOW_READER, absl::CancelledError(""));
      }};
  EagerSteps steps(&inbox_);
  for (int round = 0; round < 8; ++round) {
    const auto stream = *admission_.Submit("", {});
    steps.Expect(*stream, [&] { kEnds[round % 4](*stream); });
    EXPECT_FALSE(stream->status().ok()) << round % 4;
    inbox_.Release(stream->request());
    router_.Unregister(*stream);
    admission_.Leave(*stream);
  }
  inbox_.Stop();
  EXPECT_EQ(steps.num_summaries(), 0);
}

TEST_F(DrainTest, APauseKeepsTheGroupAndIsTakenBack) {
  const auto stream = *admission_.Submit("", {});
  for (int i = 0; i < 2; ++i) {
    drain_.Pause(std::nullopt);
    EXPECT_EQ(drain_.state().state(), v1::DRAINING);
    EXPECT_EQ(drain_.state().live_requests(), 1);
    EXPECT_EQ(ErrorReasonOf(admission_.Submit("", {}).status()),
              "WORKER_DRAINING");
  }
  Finish(1, v1::STOP);
  EXPECT_EQ(drain_.state().live_requests(), 0);
  EXPECT_EQ(Drained(), "a");  // and no stop
  EXPECT_TRUE(stream->status().ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(drain_.Resume().ok());
    EXPECT_EQ(drain_.state().state(), v1::SERVING);
  }
  EXPECT_TRUE(admission_.Submit("", {}).ok());
}

TEST_F(DrainTest, APauseEndsWhatIsLiveAtItsTimeout) {
  const auto stream = *admission_.Submit("", {});
  absl::Notification ended;
  stream->set_reader([&] { ended.Notify(); });
  drain_.Pause(std::chrono::milliseconds(1));
  ended.WaitForNotification();
  stream->set_reader(nullptr);
  EXPECT_EQ(ErrorReasonOf(stream->status()), "WORKER_STOPPED");
  EXPECT_EQ(Drained(), "ax");
}

TEST_F(DrainTest, ATimeoutThatWasTakenBackEndsNothing) {
  const auto stream = *admission_.Submit("", {});
  drain_.Pause(std::chrono::milliseconds(20));
  EXPECT_TRUE(drain_.Resume().ok());
  absl::Notification later;
  admission_.timers().At(
      Admission::Clock::now() + std::chrono::milliseconds(30),
      [&] { later.Notify(); });
  later.WaitForNotification();
  EXPECT_TRUE(stream->status().ok());
}

TEST_F(DrainTest, NothingResumesAGroupThatStopsOrHasFailed) {
  drain_.Pause(std::nullopt);
  drain_.Begin();
  EXPECT_EQ(ErrorReasonOf(drain_.Resume()), "WORKER_STOPPING");
  EXPECT_EQ(drain_.state().state(), v1::STOPPING);
  drain_.Pause(std::nullopt);  // changes nothing
  EXPECT_EQ(drain_.state().state(), v1::STOPPING);
  admission_.Close(v1::FAILED, absl::UnavailableError("rank 1"));
  EXPECT_EQ(ErrorReasonOf(drain_.Resume()), "WORKER_STOPPING");
  EXPECT_EQ(drain_.state().state(), v1::FAILED);
}

}  // namespace
}  // namespace lockstep
