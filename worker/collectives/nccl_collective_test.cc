// NCCL's collective on a fake NCCL and a fake driver: what it computes, and how
// it ends when ranks do not come, when NCCL fails, and when it is aborted.
#include "worker/collectives/nccl_collective.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/testing/device/fake_cuda.h"
#include "worker/collectives/nccl_library.h"
#include "worker/device/cuda_device.h"
#include "worker/device/cuda_driver.h"
#include "worker/device/cuda_event.h"
#include "worker/device/cuda_stream.h"

namespace lockstep {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int kRemoteError = 6;

template <typename T>
T Value(absl::StatusOr<T> result) {
  EXPECT_TRUE(result.ok()) << result.status();
  return *std::move(result);
}

class NcclCollectiveTest : public testing::Test {
 protected:
  // On a thread of each rank: its collective, and what came of its joining.
  using Run =
      std::function<void(NcclCollective*, CudaStream*, const absl::Status&)>;

  void OnRanks(int size, int present, NcclCollective::Options options,
               const Run& run,
               absl::Duration timeout = absl::InfiniteDuration()) {
    const NcclApi::UniqueId id = Value(NcclCollective::NewId(nccl_.get()));
    options.size = size;
    std::vector<std::thread> ranks;
    for (int rank = 0; rank < present; ++rank) {
      options.rank = rank;
      ranks.emplace_back([this, id, options, timeout, &run] {
        ASSERT_TRUE(device_->MakeCurrent().ok());
        const auto stream = Value(CudaStream::Create(device_.get()));
        NcclCollective collective(nccl_.get(), stream.get(), options);
        run(&collective, stream.get(), collective.Join(id, timeout));
      });
    }
    for (std::thread& rank : ranks) rank.join();
  }

  void OnAllStreams(
      int size, const std::function<void(NcclCollective*, CudaStream*)>& run) {
    OnRanks(size, size, {},
            [&](NcclCollective* collective, CudaStream* stream,
                const absl::Status& joined) {
              ASSERT_TRUE(joined.ok()) << joined;
              run(collective, stream);
            });
  }

  void OnAll(int size, const std::function<void(NcclCollective*)>& run) {
    OnAllStreams(size, [&](NcclCollective* collective, CudaStream*) {
      run(collective);
    });
  }

  FakeCuda fake_;
  const std::unique_ptr<NcclLibrary> nccl_ =
      Value(NcclLibrary::Load(fake_.library()));
  const std::unique_ptr<CudaDriver> driver_ =
      Value(CudaDriver::Load(fake_.library()));
  const std::unique_ptr<CudaDevice> device_ =
      Value(CudaDevice::Open(driver_.get(), 0));
};

TEST(NcclLibrary, SaysInOneSentenceThatThereIsNone) {
  EXPECT_THAT(
      std::string(NcclLibrary::Load("libnccl_of_nobody.so").status().message()),
      HasSubstr("There is no NCCL on this machine: libnccl_of_nobody.so"));
  EXPECT_EQ(NcclLibrary::Load("libm.so.6").status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(NcclCollectiveTest, SumsAndGathersOverAllRanks) {
  for (int size : {1, 2, 4}) {
    fake_.Delay(size, /*most_us=*/200);
    OnAll(size, [&](NcclCollective* collective) {
      for (int round = 0; round < 20; ++round) {
        std::vector<float> sum(1 + round, collective->rank() + round);
        ASSERT_TRUE(collective->AllReduceSum(absl::MakeSpan(sum)).ok());
        EXPECT_THAT(sum, Each(size * round + size * (size - 1) / 2));
        std::vector<float> own = {float(round), float(collective->rank())};
        std::vector<float> all(2 * size);
        ASSERT_TRUE(collective->AllGather(own, absl::MakeSpan(all)).ok());
        for (int rank = 0; rank < size; ++rank) {
          EXPECT_EQ(all[2 * rank], round);
          EXPECT_EQ(all[2 * rank + 1], rank);
        }
      }
      EXPECT_EQ(collective->num_all_reduces(), 20);
      EXPECT_EQ(collective->num_all_gathers(), 20);
    });
  }
}

// As a step does: the host is done before the device has begun.
TEST_F(NcclCollectiveTest, CallsAreEnqueuedAndAwaitedTogether) {
  fake_.Delay(/*seed=*/9, /*most_us=*/100);
  OnAllStreams(3, [&](NcclCollective* collective, CudaStream* stream) {
    const auto event = Value(CudaEvent::Create(&stream->device()));
    std::vector<float> sum(5, 1), all(3);
    const float own = collective->rank();
    for (int i = 0; i < 10; ++i) {
      ASSERT_TRUE(collective->EnqueueAllReduceSum(absl::MakeSpan(sum)).ok());
    }
    ASSERT_TRUE(
        collective->EnqueueAllGather({&own, 1}, absl::MakeSpan(all)).ok());
    ASSERT_TRUE(event->Record(stream->handle()).ok());
    ASSERT_TRUE(collective->Await(*event).ok());
    EXPECT_THAT(sum, Each(59049));  // 3 to the 10th
    EXPECT_THAT(all, ElementsAre(0, 1, 2));
    EXPECT_EQ(collective->num_all_reduces(), 10);
  });
}

TEST_F(NcclCollectiveTest, AnAbortEndsTheWaitForWhatIsEnqueued) {
  OnAllStreams(2, [&](NcclCollective* collective, CudaStream* stream) {
    if (collective->rank() == 1) return;
    const auto event = Value(CudaEvent::Create(&stream->device()));
    float value = 1;
    ASSERT_TRUE(collective->EnqueueAllReduceSum({&value, 1}).ok());
    ASSERT_TRUE(event->Record(stream->handle()).ok());
    std::thread aborter([&] { collective->Abort("rank 1 left"); });
    EXPECT_EQ(collective->Await(*event), absl::UnavailableError("rank 1 left"));
    aborter.join();
    ASSERT_TRUE(stream->Synchronize().ok());  // ends, too
  });
}

TEST_F(NcclCollectiveTest, JoiningEndsWhenARankDoesNotCome) {
  const int alive = fake_.alive();
  OnRanks(
      /*size=*/3, /*present=*/2, {},
      [](NcclCollective* collective, CudaStream*, const absl::Status& joined) {
        EXPECT_EQ(joined,
                  absl::DeadlineExceededError(absl::StrCat(
                      "ncclCommInitRankConfig of rank ", collective->rank(),
                      " on device 0 (Fake GPU): the start of NCCL with "
                      "3 ranks, for which not all ranks came within "
                      "50ms.")));
        float value = 1;
        EXPECT_EQ(collective->AllReduceSum({&value, 1}), joined);
      },
      absl::Milliseconds(50));
  EXPECT_EQ(fake_.alive(), alive);
}

TEST_F(NcclCollectiveTest, AnAbortEndsJoiningBeforeItAndInProgress) {
  const absl::Status left = absl::UnavailableError("the leader left");
  const NcclApi::UniqueId id = Value(NcclCollective::NewId(nccl_.get()));
  const auto stream = Value(CudaStream::Create(device_.get()));
  const int alive = fake_.alive();
  for (const bool before : {true, false}) {
    NcclCollective alone(nccl_.get(), stream.get(), {.rank = 1, .size = 2});
    absl::Notification joins;
    std::thread aborter([&] {
      if (!before) joins.WaitForNotification();
      alone.Abort(left.message());
      if (before) joins.Notify();
    });
    if (before) {
      joins.WaitForNotification();
    } else {
      joins.Notify();
    }
    EXPECT_EQ(alone.Join(id, absl::InfiniteDuration()), left);
    aborter.join();
  }
  EXPECT_EQ(fake_.alive(), alive);
}

TEST_F(NcclCollectiveTest, ACallEndsWhenARankDoesNotCome) {
  OnAll(2, [&](NcclCollective* collective) {
    if (collective->rank() == 1) return;
    collective->SetTimeout(absl::Milliseconds(50));
    std::vector<float> data(8);
    const absl::Status late = collective->AllReduceSum(absl::MakeSpan(data));
    EXPECT_EQ(late, absl::DeadlineExceededError(
                        "ncclAllReduce of rank 0 on device 0 (Fake GPU): an "
                        "all-reduce of 8 floats, for which not all ranks came "
                        "within 50ms."));
    EXPECT_EQ(collective->AllReduceSum(absl::MakeSpan(data)), late);
  });
}

TEST_F(NcclCollectiveTest, AbortEndsACallInProgressWithItsReason) {
  OnAll(2, [&](NcclCollective* collective) {
    if (collective->rank() == 1) return;
    absl::Notification began;
    std::thread aborter([&] {
      began.WaitForNotification();
      collective->Abort("rank 1 lost its power supply");
      collective->Abort("a second reason");
    });
    float value = 1;
    began.Notify();
    EXPECT_EQ(collective->AllReduceSum({&value, 1}),
              absl::UnavailableError("rank 1 lost its power supply"));
    aborter.join();
    EXPECT_EQ(collective->AllGather({&value, 1}, {&value, 1}),
              absl::UnavailableError("rank 1 lost its power supply"));
  });
}

// Whoever made a call may free its tensor when the abort has returned.
TEST_F(NcclCollectiveTest, ACallThatHasNotBegunTouchesNothingAfterAnAbort) {
  std::atomic<int> touches = 0;
  fake_.OnNcclTouch([&] { ++touches; });
  OnAll(1, [&](NcclCollective* collective) {
    fake_.Hold(true);
    collective->SetTimeout(absl::Milliseconds(1));
    auto data = std::make_unique<float>(1);
    EXPECT_FALSE(collective->AllReduceSum({data.get(), 1}).ok());
    data.reset();
    fake_.Hold(false);
  });
  EXPECT_EQ(touches, 0);
}

TEST_F(NcclCollectiveTest, AnAbortWaitsForACallThatTouchesItsTensor) {
  OnAll(1, [&](NcclCollective* collective) {
    absl::Notification touching;
    std::promise<void> aborted;
    const std::shared_future<void> has_aborted = aborted.get_future().share();
    bool is_early = false;
    std::thread aborter([&] {
      touching.WaitForNotification();
      collective->Abort("rank 1 lost its power supply");
      aborted.set_value();
    });
    fake_.OnNcclTouch([&] {
      if (!touching.HasBeenNotified()) touching.Notify();
      is_early |= has_aborted.wait_for(std::chrono::milliseconds(50)) ==
                  std::future_status::ready;
    });
    float value = 1;
    // Whether it is done before it is aborted is the device's affair.
    (void)collective->AllReduceSum({&value, 1});
    aborter.join();
    fake_.OnNcclTouch(nullptr);
    EXPECT_FALSE(is_early);
  });
}

TEST_F(NcclCollectiveTest, AnAsynchronousErrorEndsACall) {
  OnAll(2, [&](NcclCollective* collective) {
    if (collective->rank() == 1) return;
    fake_.FailNccl(/*rank=*/0, kRemoteError);
    float value = 1;
    EXPECT_EQ(collective->AllReduceSum({&value, 1}),
              absl::UnavailableError(
                  "NCCL of rank 0 on device 0 (Fake GPU): remote process "
                  "exited or there was a network error (6), the fake's own "
                  "words"));
  });
}

TEST_F(NcclCollectiveTest, AnAsynchronousErrorBetweenCallsIsTold) {
  absl::Notification told;
  absl::Status failure;
  const NcclCollective::Options options = {
      .watch_period = absl::Milliseconds(1),
      .failed = [&](const absl::Status& status) {
        failure = status;
        told.Notify();
      }};
  OnRanks(
      /*size=*/1, /*present=*/1, options,
      [&](NcclCollective* collective, CudaStream*, const absl::Status& joined) {
        ASSERT_TRUE(joined.ok()) << joined;
        fake_.FailNccl(/*rank=*/0, kRemoteError);
        told.WaitForNotification();
        EXPECT_THAT(std::string(failure.message()),
                    HasSubstr("remote process"));
        float value = 1;
        EXPECT_EQ(collective->AllReduceSum({&value, 1}), failure);
      });
}

TEST_F(NcclCollectiveTest, AFailureOfAnyCallIsAStatusAndLeavesNothingBehind) {
  for (const char* call : {"ncclCommInitRankConfig", "ncclCommGetAsyncError",
                           "ncclAllReduce", "cuStreamQuery"}) {
    SCOPED_TRACE(call);
    const int alive = fake_.alive();
    fake_.Fail(call, /*nth=*/1, /*code=*/2);
    OnRanks(/*size=*/1, /*present=*/1, {},
            [](NcclCollective* collective, CudaStream*, absl::Status status) {
              float value = 1;
              if (status.ok()) status = collective->AllReduceSum({&value, 1});
              EXPECT_FALSE(status.ok());
              EXPECT_THAT(std::string(status.message()),
                          HasSubstr("on device 0 (Fake GPU): "));
            });
    fake_.Fail("", 0, 0);
    EXPECT_EQ(fake_.alive(), alive);
  }
}

}  // namespace
}  // namespace lockstep
