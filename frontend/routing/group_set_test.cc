#include "frontend/routing/group_set.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>
#include <absl/time/time.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "common/error_reason.h"
#include "frontend/routing/policy/round_robin.h"
#include "tests/testing/fake_worker.h"

namespace lockstep {
namespace {

using ::lockstep::testing::FakeWorker;

class GroupSetTest : public ::testing::Test {
 protected:
  GroupSetTest() : GroupSetTest({.tokenizer = {.vocabulary_size = 259}}) {}
  explicit GroupSetTest(const GroupSetOptions& options)
      : groups_(options, std::make_unique<RoundRobin>()) {
    groups_.Start([this] { ++turns_; });
  }

  FakeWorker* AddWorker(const std::string& name = "fake",
                        uint32_t max_context = 100) {
    workers_.push_back(std::make_unique<FakeWorker>());
    workers_.back()->model_info().set_name(name);
    workers_.back()->model_info().set_max_context_tokens(max_context);
    workers_.back()->model_info().set_fingerprint("bits");
    workers_.back()->Start();
    addresses_.push_back(workers_.back()->address());
    return workers_.back().get();
  }
  void AwaitReady(int number) {
    while (groups_.num_ready() != number) std::this_thread::yield();
  }
  void AwaitTurns(int number) {
    while (turns_ != number) std::this_thread::yield();
  }
  // Those that requests go to.
  std::set<std::string> Picked(const ServedModel* continues = nullptr) {
    std::set<std::string> addresses;
    for (int i = 0; i < 4; ++i) {
      auto lease = groups_.Pick({.route = {}, .continues = continues});
      if (lease.has_value()) addresses.insert(lease->client().address());
    }
    return addresses;
  }

  std::vector<std::unique_ptr<FakeWorker>> workers_;
  std::vector<std::string> addresses_;
  std::atomic<int> turns_ = 0;
  GroupSet groups_;
};

TEST_F(GroupSetTest, RequestsGoToEveryGroupThatIsReady) {
  AddWorker();
  AddWorker();
  groups_.SetAddresses(addresses_);
  AwaitReady(2);
  EXPECT_EQ(Picked(), (std::set<std::string>{addresses_[0], addresses_[1]}));
  workers_[0]->SetServing(false);
  AwaitReady(1);
  EXPECT_EQ(Picked(), std::set<std::string>{addresses_[1]});
  EXPECT_TRUE(groups_.Model().ok());
  AwaitTurns(1);
  workers_[1]->Stop();
  AwaitReady(0);
  EXPECT_TRUE(Picked().empty());
  AwaitTurns(2);
  EXPECT_EQ(
      groups_.Model().status(),
      MakeError(ErrorReason::kUnavailable,
                absl::StrCat("none of 2 workers is ready: the worker at ",
                             addresses_[0],
                             " is not ready: it is starting or leaving.")));
}

TEST_F(GroupSetTest, SaysThatItKnowsNone) {
  EXPECT_EQ(groups_.Model().status(), MakeError(ErrorReason::kWorkerUnreachable,
                                                "no worker is known yet."));
}

TEST_F(GroupSetTest, ExcludedOnesAreNotPicked) {
  AddWorker();
  AddWorker();
  groups_.SetAddresses(addresses_);
  AwaitReady(2);
  const auto first = groups_.Pick({.route = {}});
  for (int i = 0; i < 3; ++i) {
    const auto other =
        groups_.Pick({.route = {}, .excluded = {first->model()}});
    EXPECT_NE(other->client().address(), first->client().address());
  }
}

TEST_F(GroupSetTest, AGroupThatWasAwayIsAnotherOne) {
  AddWorker();
  groups_.SetAddresses(addresses_);
  AwaitReady(1);
  const auto before = groups_.Pick({.route = {}});
  const std::vector tried = {before->model()};
  const GroupSet::Wish wish{.route = {}, .excluded = tried};
  EXPECT_FALSE(groups_.Pick(wish).has_value());
  workers_[0]->Stop();
  AwaitReady(0);
  workers_[0]->Start();
  AwaitReady(1);
  EXPECT_TRUE(groups_.Pick(wish).has_value());
}

class SilentGroupTest : public GroupSetTest {
 protected:
  SilentGroupTest()
      : GroupSetTest({.tokenizer = {.vocabulary_size = 259},
                      .unready_after = absl::Milliseconds(200)}) {}
};

TEST_F(SilentGroupTest, IsNotReadyUntilItReportsItsLoadAgain) {
  AddWorker()->SayLoad();
  AddWorker();  // which never reports
  groups_.SetAddresses({addresses_[0]});
  AwaitTurns(2);  // it was ready, and is so no more
  EXPECT_EQ(groups_.num_ready(), 0);
  EXPECT_TRUE(Picked().empty());
  EXPECT_FALSE(groups_.HasGroup());
  EXPECT_EQ(groups_.Model().status(),
            absl::UnavailableError(
                absl::StrCat("the worker at ", addresses_[0],
                             " has not said its load for 200ms.")));
  absl::Notification told;
  groups_.AwaitGroup(nullptr, absl::InfiniteFuture(), [&] { told.Notify(); });
  groups_.SetAddresses(addresses_);
  told.WaitForNotification();
  EXPECT_EQ(Picked(), std::set<std::string>{addresses_[1]});
  absl::Notification back;
  std::thread says([&] {
    while (!back.HasBeenNotified()) workers_[0]->SayLoad();
  });
  AwaitReady(2);
  back.Notify();
  says.join();
}

TEST_F(GroupSetTest, WhoWaitsIsToldWhenAGroupIsReady) {
  AddWorker();
  absl::Notification told;
  groups_.AwaitModel([&] { told.Notify(); });
  EXPECT_EQ(groups_.waits().number(), 1);
  groups_.SetAddresses(addresses_);
  told.WaitForNotification();
  EXPECT_TRUE(groups_.HasGroup());
  absl::Notification at_once;
  groups_.AwaitModel([&] { at_once.Notify(); });
  at_once.WaitForNotification();
  EXPECT_EQ(groups_.counters().group_waits, 2);
}

TEST_F(GroupSetTest, NobodyNewWaitsAfterTheEndOfWaits) {
  const auto why = MakeError(ErrorReason::kGatewayDraining, "it drains.");
  absl::Notification ended, at_once;
  groups_.AwaitModel([&] { ended.Notify(); });
  groups_.EndWaits(why);
  ended.WaitForNotification();
  EXPECT_EQ(groups_.Model().status(), why);
  groups_.AwaitModel([&] { at_once.Notify(); });
  at_once.WaitForNotification();
}

TEST_F(GroupSetTest, TheContextIsTheShortestOne) {
  AddWorker("fake", 100);
  AddWorker("fake", 80);
  groups_.SetAddresses(addresses_);
  AwaitReady(2);
  EXPECT_EQ(groups_.Model()->max_context_tokens, 80);
}

TEST_F(GroupSetTest, AGroupWithAnotherModelWaitsUntilNoneHasTheFirst) {
  AddWorker("fake");
  groups_.SetAddresses(addresses_);
  AwaitReady(1);
  AddWorker("other");
  groups_.SetAddresses(addresses_);
  AwaitReady(2);
  EXPECT_EQ(groups_.Model()->name, "fake");
  EXPECT_EQ(Picked(), std::set<std::string>{addresses_[0]});
  workers_[0]->Stop();
  AwaitReady(1);
  EXPECT_EQ(groups_.Model()->name, "other");
  EXPECT_EQ(Picked(), std::set<std::string>{addresses_[1]});
}

TEST_F(GroupSetTest, OnlyGroupsWithTheSameBitsGoOnWithAnAnswer) {
  const auto change = [](FakeWorker* worker,
                         const std::function<void(FakeWorker&)>& edit) {
    worker->Stop();
    edit(*worker);
    worker->Start();
  };
  AddWorker();
  change(AddWorker(), [](auto& w) { w.model_info().set_fingerprint("other"); });
  change(AddWorker(), [](auto& w) { w.server_info().set_version("next"); });
  change(AddWorker(),
         [](auto& w) { w.model_info().set_max_context_tokens(99); });
  AddWorker();
  groups_.SetAddresses(addresses_);
  AwaitReady(5);
  EXPECT_EQ(Picked().size(), 4);  // any of the five, in four turns
  const ServedModel began_with{"fake", 100, 259, "bits", "fake"};
  EXPECT_TRUE(groups_.HasGroup(&began_with));
  EXPECT_EQ(Picked(&began_with),
            (std::set<std::string>{addresses_[0], addresses_[4]}));
  workers_[0]->Stop();
  workers_[4]->Stop();
  AwaitReady(3);
  EXPECT_FALSE(groups_.HasGroup(&began_with));
  EXPECT_TRUE(Picked(&began_with).empty());
}

TEST_F(GroupSetTest, AGroupThatIsTakenOutKeepsWhatItHas) {
  AddWorker();
  AddWorker();
  groups_.SetAddresses(addresses_);
  AwaitReady(2);
  auto lease = groups_.Pick({.route = {}});
  ASSERT_TRUE(lease.has_value());
  const bool was_first = lease->client().address() == addresses_[0];
  const std::string other = addresses_[was_first ? 1 : 0];
  groups_.SetAddresses({other});
  EXPECT_EQ(groups_.num_ready(), 1);
  EXPECT_EQ(Picked(), std::set<std::string>{other});
  grpc::ClientContext context;
  EXPECT_TRUE(lease->client().GetModelInfo(&context).ok());
  lease->OnAccepted();
  lease->OnFailure();
  groups_.SetAddresses({});
  EXPECT_FALSE(groups_.Model().ok());
  AwaitTurns(2);
}

}  // namespace
}  // namespace lockstep
