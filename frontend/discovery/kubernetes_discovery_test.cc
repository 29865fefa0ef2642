#include "frontend/discovery/kubernetes_discovery.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <glog/logging.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "tests/testing/kubernetes/endpoint_slice.h"
#include "tests/testing/kubernetes/fake_api_server.h"

namespace lockstep {
namespace {

using ::lockstep::testing::EndpointSlice;
using ::lockstep::testing::FakeApiServer;

using Addresses = std::vector<std::string>;

// The warnings of the log.
class Warnings : public google::LogSink {
 public:
  Warnings() { google::AddLogSink(this); }
  ~Warnings() override { google::RemoveLogSink(this); }

  void send(google::LogSeverity severity, const char*, const char*, int,
            const google::LogMessageTime&, const char* message,
            size_t bytes) override {
    if (severity < google::WARNING) return;
    absl::MutexLock lock(&mutex_);
    lines_.emplace_back(message, bytes);
  }

  std::vector<std::string> lines() const {
    absl::MutexLock lock(&mutex_);
    return lines_;
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

class KubernetesDiscoveryTest : public ::testing::Test {
 protected:
  KubernetesDiscoveryTest() {
    options_.service = {"prod", "lockstep-leaders"};
    options_.server = {"127.0.0.1", absl::StrCat(server_.port())};
    options_.account_folder = folder_;
    options_.first_pause = absl::Milliseconds(1);
    options_.longest_pause = absl::Milliseconds(20);
    server_.Put(Slice({"10.0.0.1", "10.0.0.2"}));
  }

  // The one of the Service, with these ready.
  static nlohmann::json Slice(const std::vector<std::string>& addresses) {
    std::vector<testing::Endpoint> endpoints;
    for (const std::string& address : addresses) endpoints.push_back({address});
    return EndpointSlice("lockstep-leaders-x", 50052, endpoints);
  }

  void Start() {
    discovery_.emplace(options_, [this](const Addresses& addresses) {
      absl::MutexLock lock(&mutex_);
      told_.push_back(addresses);
    });
    discovery_->Start();
  }

  // Until it was told of these last.
  void AwaitTold(const Addresses& hosts) {
    Addresses addresses;
    for (const std::string& host : hosts) addresses.push_back(host + ":50052");
    const auto is_told = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
      return !told_.empty() && told_.back() == addresses;
    };
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(&is_told));
  }
  int times_told() {
    absl::MutexLock lock(&mutex_);
    return told_.size();
  }
  void AwaitUp(bool is_up) {
    while (discovery_->is_up() != is_up) std::this_thread::yield();
  }
  void AwaitWarning(const std::string& text) {
    const auto is_it = [&](const std::string& line) {
      return absl::StrContains(line, text);
    };
    while (true) {
      const std::vector<std::string> lines = warnings_.lines();
      if (std::any_of(lines.begin(), lines.end(), is_it)) return;
      std::this_thread::yield();
    }
  }

  Warnings warnings_;
  const std::string folder_ = ::testing::TempDir() + "account";
  FakeApiServer server_{folder_};
  KubernetesDiscovery::Options options_;
  absl::Mutex mutex_;
  std::vector<Addresses> told_ ABSL_GUARDED_BY(mutex_);
  std::optional<KubernetesDiscovery> discovery_;
};

TEST_F(KubernetesDiscoveryTest, AListAndThenEachChange) {
  Start();
  AwaitTold({"10.0.0.1", "10.0.0.2"});
  server_.Put(Slice({"10.0.0.2"}));
  AwaitTold({"10.0.0.2"});
  server_.Put(EndpointSlice("another", 50052, {{"10.0.0.3"}}));
  AwaitTold({"10.0.0.2", "10.0.0.3"});
  server_.Delete("lockstep-leaders-x");
  AwaitTold({"10.0.0.3"});
  server_.Delete("another");
  AwaitTold({});
  EXPECT_EQ(times_told(), 5);
  EXPECT_TRUE(discovery_->is_up());
  const auto targets = server_.targets();
  const std::string list =
      "/apis/discovery.k8s.io/v1/namespaces/prod/endpointslices"
      "?labelSelector=kubernetes.io%2Fservice-name%3Dlockstep-leaders";
  ASSERT_EQ(targets.size(), 2);
  EXPECT_EQ(targets[0], list);
  EXPECT_TRUE(absl::StartsWith(
      targets[1],
      list + "&watch=true&allowWatchBookmarks=true&timeoutSeconds="))
      << targets[1];
  EXPECT_TRUE(absl::EndsWith(targets[1], "&resourceVersion=2")) << targets[1];
}

TEST_F(KubernetesDiscoveryTest, WhatDoesNotChangeIsNotTold) {
  Start();
  server_.AwaitWatches(1);
  server_.Put(Slice({"10.0.0.1", "10.0.0.2"}));
  server_.Put(Slice({"10.0.0.1"}));
  AwaitTold({"10.0.0.1"});
  EXPECT_EQ(times_told(), 2);
}

TEST_F(KubernetesDiscoveryTest, AWatchGoesOnWhereTheLastOneEnded) {
  Start();
  server_.AwaitWatches(1);
  server_.Put(Slice({"10.0.0.1"}));  // version 3
  AwaitTold({"10.0.0.1"});
  server_.EndWatches();
  server_.AwaitWatches(2);
  server_.CutWatches();
  server_.AwaitWatches(3);
  server_.Bookmark();                // version 4
  server_.Put(Slice({"10.0.0.2"}));  // 5
  AwaitTold({"10.0.0.2"});
  server_.CutWatches();
  server_.AwaitWatches(4);
  const auto targets = server_.targets();
  ASSERT_EQ(targets.size(), 5);
  EXPECT_TRUE(absl::EndsWith(targets[2], "&resourceVersion=3"));
  EXPECT_TRUE(absl::EndsWith(targets[3], "&resourceVersion=3"));
  EXPECT_TRUE(absl::EndsWith(targets[4], "&resourceVersion=5"));
}

TEST_F(KubernetesDiscoveryTest, ABookmarkIsWhereAWatchGoesOn) {
  Start();
  server_.AwaitWatches(1);
  server_.Bookmark();
  server_.CutWatches();
  server_.AwaitWatches(2);
  EXPECT_TRUE(absl::EndsWith(server_.targets().back(), "&resourceVersion=3"));
}

// However it is told.
TEST_F(KubernetesDiscoveryTest, AForgottenVersionNeedsAList) {
  Start();
  server_.AwaitWatches(1);
  server_.Forget(/*by_answer=*/false);
  server_.CutWatches();
  server_.AwaitLists(2);
  server_.AwaitWatches(3);  // the second was refused
  server_.Forget(/*by_answer=*/true);
  server_.CutWatches();
  server_.AwaitLists(3);
  server_.AwaitWatches(5);
  server_.Put(Slice({"10.0.0.1"}));
  AwaitTold({"10.0.0.1"});
  EXPECT_EQ(times_told(), 2);
  EXPECT_LE(warnings_.lines().size(), 2);  // of the cuts
}

// A watch from its later versions would be silent.
TEST_F(KubernetesDiscoveryTest, AServerThatWasSetBackIsAskedForAList) {
  Start();
  server_.AwaitWatches(1);
  server_.Bookmark();
  server_.Put(Slice({"10.0.0.1"}));  // version 4
  AwaitTold({"10.0.0.1"});
  server_.Refuse(503, "etcd is away");
  server_.CutWatches();
  server_.AwaitRequests(4);
  server_.SetBack();
  server_.Put(Slice({"10.0.0.2"}));  // version 2
  server_.Refuse(0);
  AwaitTold({"10.0.0.2"});
  server_.AwaitWatches(2);
  server_.Put(Slice({"10.0.0.3"}));
  AwaitTold({"10.0.0.3"});
  const auto targets = server_.targets();
  EXPECT_TRUE(absl::EndsWith(targets[2], "&resourceVersion=4")) << targets[2];
  EXPECT_EQ(targets[3], targets[0]);
}

TEST_F(KubernetesDiscoveryTest, WhileTheServerIsAwayAllStays) {
  Start();
  AwaitTold({"10.0.0.1", "10.0.0.2"});
  server_.AwaitWatches(1);
  server_.Stop();
  AwaitUp(false);
  AwaitWarning("the workers stay as they were");
  server_.Put(Slice({"10.0.0.2"}));
  EXPECT_EQ(times_told(), 1);
  server_.Start();
  AwaitTold({"10.0.0.2"});
  AwaitUp(true);
}

TEST_F(KubernetesDiscoveryTest, GarbageNeedsAList) {
  Start();
  int lists = 1;
  for (const std::string& garbage :
       {std::string("garbage\n"), std::string("{\"type\":\"WHAT\"}\n"),
        std::string(3 << 20, 'x')}) {
    server_.AwaitWatches(lists);
    server_.SendToWatches(garbage);
    server_.AwaitLists(++lists);
  }
  AwaitTold({"10.0.0.1", "10.0.0.2"});
  EXPECT_EQ(times_told(), 1);
}

TEST_F(KubernetesDiscoveryTest, ASlowStreamIsReadAsItComes) {
  server_.SetPieceBytes(1);
  Start();
  server_.AwaitWatches(1);
  server_.Put(Slice({"10.0.0.2"}));
  AwaitTold({"10.0.0.2"});
}

TEST_F(KubernetesDiscoveryTest, SaysWhichRuleIsMissing) {
  server_.Refuse(403, "endpointslices is forbidden");
  Start();
  AwaitWarning(
      "cannot follow the Service prod/lockstep-leaders: the API server answers "
      "403: endpointslices is forbidden; the gateway's service account needs a "
      "Role in the namespace prod with the rule {apiGroups: "
      "[discovery.k8s.io], resources: [endpointslices], verbs: [list, "
      "watch]}; the workers stay as they were");
  EXPECT_FALSE(discovery_->is_up());
  server_.AwaitRequests(5);  // it does not give up, nor say it again
  EXPECT_EQ(warnings_.lines().size(), 1);
  server_.Refuse(0);
  AwaitTold({"10.0.0.1", "10.0.0.2"});
}

TEST_F(KubernetesDiscoveryTest, ATokenThatWasReplacedIsUsed) {
  Start();
  server_.AwaitWatches(1);
  server_.ChangeToken("another");
  server_.CutWatches();
  server_.AwaitWatches(2);
  server_.Put(Slice({"10.0.0.1"}));
  AwaitTold({"10.0.0.1"});
}

TEST_F(KubernetesDiscoveryTest, ListsFromTimeToTime) {
  options_.list_every = absl::ZeroDuration();
  Start();
  for (int i = 1; i < 4; ++i) {
    server_.AwaitWatches(i);
    server_.EndWatches();
    server_.AwaitLists(i + 1);
  }
}

TEST_F(KubernetesDiscoveryTest, StopsWhateverTheServerDoes) {
  server_.Hold();
  Start();
  server_.AwaitRequests(1);
  discovery_->Stop();
  EXPECT_EQ(times_told(), 0);
}

}  // namespace
}  // namespace lockstep
