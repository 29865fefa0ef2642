#include "tests/testing/process.h"

#include <gtest/gtest.h>
#include <signal.h>

namespace lockstep::testing {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(30);

std::unique_ptr<Process> Shell(
    const std::string& script,
    const std::map<std::string, std::string>& environment = {}) {
  auto process = Process::Start("/bin/sh", {"-c", script}, environment);
  EXPECT_TRUE(process.ok()) << process.status();
  return *std::move(process);
}

TEST(Process, ReadsThePortFromTheServingLine) {
  auto process =
      Shell("echo loading >&2; echo 'worker: serving m on 0.0.0.0:4711'; cat");
  EXPECT_EQ(process->WaitForPort(kTimeout).value(), 4711);
}

TEST(Process, PassesArgumentsAndEnvironment) {
  auto process = Shell("echo \"got $LOCKSTEP_X\"", {{"LOCKSTEP_X", "a b"}});
  EXPECT_EQ(process->WaitForLine("got", kTimeout).value(), "got a b");
}

TEST(Process, SaysHowTheProgramEnded) {
  EXPECT_EQ(Shell("exit 3")->WaitForExit(kTimeout).value(), 3);
  auto process = Shell("exec sleep 1000");
  process->Signal(SIGTERM);
  EXPECT_EQ(process->WaitForExit(kTimeout).value(), 128 + SIGTERM);
}

TEST(Process, AMissingLineComesWithTheOutput) {
  auto process = Shell("echo only this");
  const auto line = process->WaitForLine("other", kTimeout);
  EXPECT_EQ(line.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(line.status().message().find("only this"), std::string::npos);
}

TEST(Process, SeesChildrenAndWhetherTheyRun) {
  auto process = Shell("sleep 1000 & echo started; wait");
  ASSERT_TRUE(process->WaitForLine("started", kTimeout).ok());
  const std::vector<pid_t> children = ChildrenOf(process->pid());
  ASSERT_EQ(children.size(), 1);
  EXPECT_TRUE(IsRunning(children[0]));
  EXPECT_FALSE(WaitUntilGone(children[0], absl::ZeroDuration()));
  kill(children[0], SIGKILL);
  EXPECT_TRUE(WaitUntilGone(children[0], kTimeout));
  EXPECT_TRUE(process->WaitForExit(kTimeout).ok());
  EXPECT_FALSE(IsRunning(children[0]));
}

}  // namespace
}  // namespace lockstep::testing
