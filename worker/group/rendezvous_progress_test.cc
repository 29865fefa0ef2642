// The lines by which ranks that wait for others say for whom.

#include <absl/base/thread_annotations.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <glog/logging.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "worker/group/rendezvous_follower.h"
#include "worker/group/rendezvous_leader.h"

namespace lockstep {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);
constexpr absl::Duration kOften = absl::Milliseconds(1);

v1::Hello HelloOf(int rank) {
  v1::Hello hello;
  hello.set_rank(rank);
  hello.set_tensor_parallel_size(4);
  hello.set_build_id("build");
  return hello;
}

// What is logged while it lives.
class LogLines final : public google::LogSink {
 public:
  LogLines() { google::AddLogSink(this); }
  ~LogLines() override { google::RemoveLogSink(this); }

  int Count(const std::string& text) const {
    absl::MutexLock lock(&mutex_);
    return std::count_if(lines_.begin(), lines_.end(), [&](const auto& line) {
      return absl::StrContains(line, text);
    });
  }

  using google::LogSink::send;
  void send(google::LogSeverity, const char*, const char*, int,
            const google::LogMessageTime&, const char* message,
            size_t size) override {
    absl::MutexLock lock(&mutex_);
    lines_.emplace_back(message, size);
  }

 private:
  mutable absl::Mutex mutex_;
  std::vector<std::string> lines_ ABSL_GUARDED_BY(mutex_);
};

// Both sides: for whom a leader waits, and for what a follower.
TEST(RendezvousProgress, IsToldAgainAndAgain) {
  auto leader = RendezvousLeader::Listen("127.0.0.1:0");
  ASSERT_TRUE(leader.ok()) << leader.status();
  const std::string address = absl::StrCat("127.0.0.1:", (*leader)->port());
  const LogLines lines;
  RendezvousLeader::Options options;
  options.timeout = kTimeout;
  options.report_every = kOften;
  options.check = [&] {
    const bool enough =
        lines.Count("waiting for rank 1, 3 at port ") >= 2 &&
        lines.Count(absl::StrCat("joining the group at ", address, ": ")) >= 2;
    return enough ? absl::UnavailableError("enough.") : absl::OkStatus();
  };
  std::thread follower([&] {
    EXPECT_FALSE(
        JoinGroup(address, HelloOf(2), {kTimeout, kOften, nullptr}).ok());
  });
  EXPECT_EQ((*leader)->Gather(HelloOf(0), options).status(),
            absl::UnavailableError("enough."));
  follower.join();
}

}  // namespace
}  // namespace lockstep
