#include "frontend/ledger/access_log.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>

#include "tests/testing/read_file.h"

namespace lockstep {
namespace {

using testing::ReadFile;

class AccessLogTest : public ::testing::Test {
 protected:
  void Open(size_t max_waiting_bytes = AccessLog::kMaxWaitingBytes) {
    auto log = AccessLog::Open(path_, "access_log", max_waiting_bytes);
    ASSERT_TRUE(log.ok()) << log.status();
    log_ = *std::move(log);
  }

  void AwaitWritten(uint64_t lines) {
    while (log_->written() + log_->dropped() < lines) sched_yield();
  }

  const std::string path_ = absl::StrCat(
      ::testing::TempDir(), "/",
      ::testing::UnitTest::GetInstance()->current_test_info()->name(), ".log");
  std::unique_ptr<AccessLog> log_;
};

TEST_F(AccessLogTest, AppendsLinesInOrder) {
  std::ofstream(path_) << "old\n";
  Open();
  log_->Write("one\n");
  log_->Write("two\n");
  log_ = nullptr;  // what waits is written
  EXPECT_EQ(ReadFile(path_), "old\none\ntwo\n");
}

TEST_F(AccessLogTest, GoesOnInANewFileWhenTheOldOneWasRenamed) {
  Open();
  log_->Write("one\n");
  AwaitWritten(1);
  ASSERT_EQ(rename(path_.c_str(), (path_ + ".1").c_str()), 0);
  log_->Write("two\n");
  AwaitWritten(2);
  EXPECT_EQ(ReadFile(path_ + ".1"), "one\n");
  EXPECT_EQ(ReadFile(path_), "two\n");
}

TEST_F(AccessLogTest, GoesOnInANewFileWhenTheOldOneWasRemoved) {
  Open();
  ASSERT_EQ(unlink(path_.c_str()), 0);
  log_->Write("one\n");
  AwaitWritten(1);
  EXPECT_EQ(ReadFile(path_), "one\n");
}

TEST_F(AccessLogTest, AHangupOpensTheFileAnewAndEndsNothing) {
  Open();
  raise(SIGHUP);
  log_->Write("one\n");
  AwaitWritten(1);
  EXPECT_EQ(ReadFile(path_), "one\n");
}

// A pipe that nobody reads is a disk that does not come back.
TEST_F(AccessLogTest, NobodyWaitsForASlowFile) {
  unlink(path_.c_str());
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  const int reader = open(path_.c_str(), O_RDONLY | O_NONBLOCK);
  constexpr size_t kMaxWaitingBytes = 100'000;
  Open(kMaxWaitingBytes);
  const std::string line = std::string(999, 'x') + "\n";
  constexpr int kLines = 1000;
  for (int i = 0; i < kLines; ++i) log_->Write(line);
  EXPECT_GT(log_->dropped(), kLines / 2);
  EXPECT_LT(log_->written(), kLines / 2);
  close(reader);  // what the thread still holds is lost, too
  log_ = nullptr;
}

TEST_F(AccessLogTest, AFileThatCanNotBeOpenedIsNamed) {
  const auto log = AccessLog::Open("/nowhere/access.log", "access_log");
  EXPECT_EQ(log.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(log.status().message(), "/nowhere/access.log"));
  EXPECT_TRUE(absl::StrContains(log.status().message(), "--access_log"));
}

}  // namespace
}  // namespace lockstep
