#include "common/environment_flags.h"

#include <gflags/gflags.h>
#include <gtest/gtest.h>

#include <cstdlib>

DEFINE_int32(test_threads, 3, "Threads, for this test.");
DEFINE_string(test_name, "none", "A name, for this test.");

namespace lockstep {
namespace {

class EnvironmentFlagsTest : public testing::Test {
 protected:
  ~EnvironmentFlagsTest() override {
    unsetenv("LOCKSTEP_TEST_THREADS");
    unsetenv("LOCKSTEP_TEST_NAME");
  }

  gflags::FlagSaver saver_;
};

TEST_F(EnvironmentFlagsTest, SetsWhatTheEnvironmentNames) {
  setenv("LOCKSTEP_TEST_THREADS", "5", 1);
  ASSERT_TRUE(SetFlagsFromEnvironment().ok());
  EXPECT_EQ(FLAGS_test_threads, 5);
  EXPECT_EQ(FLAGS_test_name, "none");
}

TEST_F(EnvironmentFlagsTest, TheCommandLineWins) {
  setenv("LOCKSTEP_TEST_NAME", "environment", 1);
  ASSERT_TRUE(SetFlagsFromEnvironment().ok());
  EXPECT_EQ(FLAGS_test_name, "environment");
  char program[] = "test";
  char flag[] = "--test_name=line";
  char* arguments[] = {program, flag, nullptr};
  char** argv = arguments;
  int argc = 2;
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  EXPECT_EQ(FLAGS_test_name, "line");
}

TEST_F(EnvironmentFlagsTest, AWordThatIsNoFlagIsNamed) {
  setenv("LOCKSTEP_TEST_THREADS", "5", 1);
  char program[] = "test", flag[] = "--test_name=line", word[] = "word";
  char* good[] = {program, flag, nullptr};
  EXPECT_TRUE(ParseFlags(2, good).ok());
  EXPECT_EQ(FLAGS_test_threads, 5);
  EXPECT_EQ(FLAGS_test_name, "line");
  char* bad[] = {program, flag, word, nullptr};
  EXPECT_EQ(ParseFlags(3, bad),
            absl::InvalidArgumentError("\"word\" is no flag; see --help."));
}

TEST_F(EnvironmentFlagsTest, NamesTheVariableThatDoesNotParse) {
  setenv("LOCKSTEP_TEST_THREADS", "many", 1);
  EXPECT_EQ(SetFlagsFromEnvironment(),
            absl::InvalidArgumentError(
                "the environment variable LOCKSTEP_TEST_THREADS is \"many\", "
                "which is no int32."));
}

}  // namespace
}  // namespace lockstep
