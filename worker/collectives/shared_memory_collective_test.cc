#include "worker/collectives/shared_memory_collective.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <thread>
#include <vector>

namespace lockstep {
namespace {

using ::testing::HasSubstr;

std::string Name(const char* test) {
  return absl::StrCat("/lockstep-test-", getpid(), "-", test);
}

bool Exists(const std::string& name) {
  const int fd = shm_open(name.c_str(), O_RDWR, 0);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

TEST(SharedMemoryCollective, RemovesTheNameWhenAllHaveAttached) {
  const std::string name = Name("removes");
  auto first = SharedMemoryCollective::Create(name, 0, 3, {});
  auto second = SharedMemoryCollective::Create(name, 1, 3, {});
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_TRUE(Exists(name));
  auto third = SharedMemoryCollective::Create(name, 2, 3, {});
  ASSERT_TRUE(third.ok());
  EXPECT_FALSE(Exists(name));
}

TEST(SharedMemoryCollective, RemovesTheNameWhenItEndsBeforeAllHaveAttached) {
  const std::string name = Name("ends");
  { auto first = SharedMemoryCollective::Create(name, 0, 2, {}); }
  EXPECT_FALSE(Exists(name));
  auto first = SharedMemoryCollective::Create(name, 0, 2, {});
  (*first)->Abort("rank 1 can not be started");
  EXPECT_FALSE(Exists(name));
}

TEST(SharedMemoryCollective, IsClosedToOtherUsers) {
  const std::string name = Name("mode");
  auto first = SharedMemoryCollective::Create(name, 0, 2, {});
  const int fd = shm_open(name.c_str(), O_RDWR, 0);
  struct stat file;
  ASSERT_EQ(fstat(fd, &file), 0);
  close(fd);
  EXPECT_EQ(file.st_mode & 0777, 0600);
}

TEST(SharedMemoryCollective, AttachesToASegmentThatComesLater) {
  const std::string name = Name("later");
  std::thread follower([&] {
    auto second = SharedMemoryCollective::Create(name, 1, 2, {});
    EXPECT_TRUE(second.ok()) << second.status();
  });
  auto first = SharedMemoryCollective::Create(name, 0, 2, {});
  EXPECT_TRUE(first.ok()) << first.status();
  follower.join();
}

TEST(SharedMemoryCollective, SaysWhatIsWrongWithAName) {
  const std::string name = Name("wrong");
  const SharedMemoryCollective::Options at_once = {absl::ZeroDuration()};
  EXPECT_EQ(SharedMemoryCollective::Create(name, 1, 2, at_once).status().code(),
            absl::StatusCode::kDeadlineExceeded);

  auto first = SharedMemoryCollective::Create(name, 0, 3, {});
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(SharedMemoryCollective::Create(name, 0, 3, {}).status().code(),
            absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(SharedMemoryCollective::Create(name, 1, 2, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
  auto second = SharedMemoryCollective::Create(name, 1, 3, {});
  const absl::Status taken =
      SharedMemoryCollective::Create(name, 1, 3, {}).status();
  EXPECT_THAT(std::string(taken.message()), HasSubstr("rank 1"));
  EXPECT_TRUE(Exists(name));
  EXPECT_EQ(SharedMemoryCollective::Create(name, 3, 3, {}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(SharedMemoryCollective, MemoryThatCanNotBeHadIsAStatus) {
  const std::string name = Name("small");
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {65536, 65536};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto result = SharedMemoryCollective::Create(name, 0, 8, {});
    const bool says_so =
        !result.ok() &&
        absl::StrContains(result.status().message(), "of /dev/shm; enlarge");
    _exit(says_so ? 0 : 1);
  }
  int exit_status = 0;
  ASSERT_EQ(waitpid(child, &exit_status, 0), child);
  EXPECT_EQ(exit_status, 0);
  EXPECT_FALSE(Exists(name));
}

TEST(SharedMemoryCollective, CallsThatDifferAbortTheGroup) {
  auto group = MakeLocalGroup(2);
  ASSERT_TRUE(group.ok());
  std::vector<float> data(8), out(8);
  absl::Status statuses[2];
  std::thread other(
      [&] { statuses[1] = (*group)[1]->AllReduceSum(absl::MakeSpan(data)); });
  statuses[0] = (*group)[0]->AllGather(absl::MakeSpan(data.data(), 4),
                                       absl::MakeSpan(out));
  other.join();
  for (const absl::Status& status : statuses) {
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
    EXPECT_THAT(std::string(status.message()), HasSubstr("out of step"));
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("an all-reduce of 8 floats"));
  }
}

// Rank 2 dies between two calls; ranks 0 and 1 wait for it until rank 0's
// watchdog, another process, gives up.
TEST(SharedMemoryCollective, RanksThatWaitForADeadOneEndWhenSomebodyAborts) {
  auto group = MakeLocalGroup(3);
  ASSERT_TRUE(group.ok());
  std::vector<pid_t> children;
  for (int rank = 1; rank < 3; ++rank) {
    const pid_t child = fork();
    if (child == 0) {
      float value = 1;
      absl::Status status = (*group)[rank]->AllReduceSum({&value, 1});
      if (rank == 2) _exit(9);
      while (status.ok()) status = (*group)[rank]->AllReduceSum({&value, 1});
      _exit(absl::StrContains(status.message(), "rank 2 died") ? 0 : 1);
    }
    children.push_back(child);
  }
  std::thread watchdog([&] {
    int exit_status = 0;
    EXPECT_EQ(waitpid(children[1], &exit_status, 0), children[1]);
    EXPECT_EQ(WEXITSTATUS(exit_status), 9);
    (*group)[0]->Abort("rank 2 died");
  });
  float value = 1;
  absl::Status status = (*group)[0]->AllReduceSum({&value, 1});
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(value, 3);
  while (status.ok()) status = (*group)[0]->AllReduceSum({&value, 1});
  EXPECT_EQ(status.message(), "rank 2 died");
  watchdog.join();
  int exit_status = 0;
  EXPECT_EQ(waitpid(children[0], &exit_status, 0), children[0]);
  EXPECT_EQ(exit_status, 0);
}

}  // namespace
}  // namespace lockstep
