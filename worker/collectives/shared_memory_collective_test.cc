#include "worker/collectives/shared_memory_collective.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tests/testing/die_in_call.h"
#include "worker/collectives/blamed_rank.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(SharedMemoryCollective, HasNoNameThatCouldBeLeft) {
  const auto collective = SharedMemoryCollective::Create(2);
  ASSERT_TRUE(collective.ok()) << collective.status();
  const std::string file = std::filesystem::read_symlink(
      absl::StrCat("/proc/self/fd/", (*collective)->address().file_descriptor));
  EXPECT_EQ(file, "/memfd:lockstep-collectives (deleted)");
}

TEST(SharedMemoryCollective, AProcessThatWasStartedOnItsOwnAttaches) {
  // A child that is forked first knows nothing of the segment but its address.
  int address_pipe[2];
  ASSERT_EQ(pipe(address_pipe), 0);
  const pid_t child = fork();
  if (child == 0) {
    SharedMemoryCollective::Address address;
    if (read(address_pipe[0], &address, sizeof(address)) != sizeof(address)) {
      _exit(1);
    }
    auto second = SharedMemoryCollective::Attach(address, 1, 2);
    float value = 2;
    _exit(second.ok() && (*second)->AllReduceSum({&value, 1}).ok() ? value : 2);
  }
  auto first = SharedMemoryCollective::Create(2);
  ASSERT_TRUE(first.ok()) << first.status();
  const SharedMemoryCollective::Address address = (*first)->address();
  ASSERT_EQ(write(address_pipe[1], &address, sizeof(address)), sizeof(address));
  float value = 1;
  EXPECT_TRUE((*first)->AllReduceSum({&value, 1}).ok());
  int exit_status = 0;
  ASSERT_EQ(waitpid(child, &exit_status, 0), child);
  EXPECT_EQ(WEXITSTATUS(exit_status), 3);
}

TEST(SharedMemoryCollective, ALeaderThatIsGoneIsAClearStatus) {
  SharedMemoryCollective::Address address;
  {
    const auto first = SharedMemoryCollective::Create(2);
    address = (*first)->address();
  }
  const absl::Status gone =
      SharedMemoryCollective::Attach(address, 1, 2).status();
  EXPECT_EQ(gone.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(
      std::string(gone.message()),
      AllOf(HasSubstr(absl::StrCat("/proc/", getpid(), "/fd/")),
            HasSubstr("must run as the same user and see each other's")));
}

TEST(SharedMemoryCollective, SaysWhatIsWrongWithAnAddress) {
  const auto first = SharedMemoryCollective::Create(3);
  ASSERT_TRUE(first.ok());
  const auto attach = [&](int rank, int size) {
    return SharedMemoryCollective::Attach((*first)->address(), rank, size)
        .status();
  };
  EXPECT_THAT(std::string(attach(1, 2).message()),
              HasSubstr("the shared memory of 2 ranks has "));
  EXPECT_EQ(attach(3, 3).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(attach(2, 3).ok());

  const int other = memfd_create("other", 0);
  struct stat file;
  fstat((*first)->address().file_descriptor, &file);
  ASSERT_EQ(ftruncate(other, file.st_size), 0);
  const absl::Status no_segment =
      SharedMemoryCollective::Attach({getpid(), other}, 1, 3).status();
  close(other);
  EXPECT_THAT(std::string(no_segment.message()),
              HasSubstr("is no shared memory of 3 ranks."));
}

TEST(SharedMemoryCollective, MemoryThatCanNotBeHadIsAStatus) {
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit = {65536, 65536};
    setrlimit(RLIMIT_FSIZE, &limit);
    const auto result = SharedMemoryCollective::Create(8);
    const bool says_so =
        absl::IsResourceExhausted(result.status()) &&
        absl::StrContains(result.status().message(), "of 8 ranks need ");
    _exit(says_so ? 0 : 1);
  }
  int exit_status = 0;
  ASSERT_EQ(waitpid(child, &exit_status, 0), child);
  EXPECT_EQ(exit_status, 0);
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

TEST(SharedMemoryCollective, ARankKilledInACallIsNamedWhenTheLimitHasPassed) {
  auto group = MakeLocalGroup(2);
  ASSERT_TRUE(group.ok());
  const pid_t child = fork();
  if (child == 0) testing::DieInAllReduce((*group)[1].get());
  Collective& collective = *(*group)[0];
  collective.SetTimeout(absl::Milliseconds(500));
  std::vector<float> data(testing::kFatalAllReduceFloats, 1.0f);
  const absl::Status status = collective.AllReduceSum(absl::MakeSpan(data));
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(),
            "an all-reduce of 524288 floats: rank 1 did not come within "
            "500ms.");
  EXPECT_EQ(data[0], 2) << "the first chunk was exchanged";
  int exit_status = 0;
  ASSERT_EQ(waitpid(child, &exit_status, 0), child);
  EXPECT_EQ(WTERMSIG(exit_status), SIGKILL);
}

// Its memory is its own and its leader's user's.
TEST(SharedMemoryCollective, IsPrivateToTheUser) {
  const auto collective = SharedMemoryCollective::Create(2);
  ASSERT_TRUE(collective.ok());
  if (getuid() != 0) GTEST_SKIP() << "only root can become another user";
  const auto address = (*collective)->address();
  const pid_t child = fork();
  if (child == 0) {
    constexpr uid_t kNobody = 65534;
    // The child of a fork has the file itself: closed, as another program's is.
    close(address.file_descriptor);
    if (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 ||
        setuid(kNobody) != 0) {
      _exit(2);
    }
    const auto attached = SharedMemoryCollective::Attach(address, 1, 2);
    _exit(absl::IsUnavailable(attached.status()) &&
                  absl::StrContains(attached.status().message(),
                                    "must run as the same user")
              ? 0
              : 1);
  }
  int exit_status = 0;
  ASSERT_EQ(waitpid(child, &exit_status, 0), child);
  EXPECT_EQ(WEXITSTATUS(exit_status), 0);
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
      const bool is_told = absl::StrContains(status.message(), "it died");
      _exit(is_told && BlamedRank(status) == 2 ? 0 : 1);
    }
    children.push_back(child);
  }
  float value = 1;
  absl::Status status = (*group)[0]->AllReduceSum({&value, 1});
  EXPECT_TRUE(status.ok());
  EXPECT_EQ(value, 3);
  std::thread watchdog([&] {
    int exit_status = 0;
    EXPECT_EQ(waitpid(children[1], &exit_status, 0), children[1]);
    EXPECT_EQ(WEXITSTATUS(exit_status), 9);
    (*group)[0]->End(BlameRank(2, absl::UnavailableError("it died")));
  });
  while (status.ok()) status = (*group)[0]->AllReduceSum({&value, 1});
  EXPECT_EQ(status.message(), "it died");
  EXPECT_EQ(BlamedRank(status), 2);
  watchdog.join();
  int exit_status = 0;
  EXPECT_EQ(waitpid(children[0], &exit_status, 0), children[0]);
  EXPECT_EQ(exit_status, 0);
}

}  // namespace
}  // namespace lockstep
