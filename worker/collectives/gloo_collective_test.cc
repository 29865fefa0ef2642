#include "worker/collectives/gloo_collective.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/die_in_call.h"

namespace lockstep {
namespace {

using ::testing::HasSubstr;

// Rank `rank` of two, whose addresses go over `channel`.
std::unique_ptr<GlooCollective> MeetOver(int channel, int rank) {
  auto collective = GlooCollective::Listen("127.0.0.1", rank, 2);
  if (!collective.ok()) return nullptr;
  const int other = 1 - rank;
  const std::string own = (*collective)->addresses()[other];
  std::string theirs(own.size(), '\0');
  if (write(channel, own.data(), own.size()) != own.size() ||
      read(channel, theirs.data(), theirs.size()) != theirs.size()) {
    return nullptr;
  }
  std::vector<std::string> of_rank(2);
  of_rank[other] = theirs;
  return (*collective)->Connect(of_rank).ok() ? *std::move(collective)
                                              : nullptr;
}

TEST(GlooCollective, ARankKilledInACallEndsTheOthersAndIsNamed) {
  int channel[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, channel), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto collective = MeetOver(channel[1], /*rank=*/1);
    if (collective != nullptr) testing::DieInAllReduce(collective.get());
    _exit(1);
  }
  const auto collective = MeetOver(channel[0], /*rank=*/0);
  ASSERT_NE(collective, nullptr);
  std::vector<float> data(testing::kFatalAllReduceFloats, 1.0f);
  const absl::Status status = collective->AllReduceSum(absl::MakeSpan(data));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(status.message()), HasSubstr("rank 1 left: "));
  EXPECT_EQ(data[0], 2) << "the first chunk was exchanged";
  int exit_status = 0;
  ASSERT_EQ(waitpid(child, &exit_status, 0), child);
  EXPECT_EQ(WTERMSIG(exit_status), SIGKILL);
}

}  // namespace
}  // namespace lockstep
