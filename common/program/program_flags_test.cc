#include "common/program/program_flags.h"

#include <absl/strings/str_cat.h>
#include <gflags/gflags.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

DEFINE_int32(test_threads, 3, "Threads, for this test.");
DEFINE_string(test_name, "none", "A name, for this test.");
DEFINE_bool(test_fast, false, "A switch, for this test.");

namespace lockstep {
namespace {

using ::testing::HasSubstr;

class ProgramFlagsTest : public ::testing::Test {
 protected:
  ~ProgramFlagsTest() override {
    unsetenv("LOCKSTEP_CONFIG");
    unsetenv("LOCKSTEP_TEST_THREADS");
    unsetenv("LOCKSTEP_TEST_NAME");
  }

  static absl::Status Parse(std::vector<std::string> words) {
    words.insert(words.begin(), "program");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    return ParseProgramFlags(static_cast<int>(words.size()), argv.data());
  }

  std::string Write(const std::string& text) {
    std::ofstream(path_) << text;
    return path_;
  }

  const std::string path_ = absl::StrCat(::testing::TempDir(), "/flags.yaml");
  gflags::FlagSaver saver_;
};

TEST_F(ProgramFlagsTest, AFileSetsWhatNothingElseDoes) {
  Write("test_threads: 5\ntest_name: file\ntest_fast: true\n");
  setenv("LOCKSTEP_TEST_NAME", "environment", 1);
  const absl::Status parsed =
      Parse({absl::StrCat("--config=", path_), "--test_threads=7"});
  ASSERT_TRUE(parsed.ok()) << parsed;
  EXPECT_EQ(FLAGS_test_threads, 7);
  EXPECT_EQ(FLAGS_test_name, "environment");
  EXPECT_TRUE(FLAGS_test_fast);
}

TEST_F(ProgramFlagsTest, TheFileIsNamedByFlagOrByTheEnvironment) {
  Write("test_threads: 5\n");
  ASSERT_TRUE(Parse({"-config", path_}).ok());
  EXPECT_EQ(FLAGS_test_threads, 5);
  FLAGS_test_threads = 3;
  setenv("LOCKSTEP_CONFIG", path_.c_str(), 1);
  ASSERT_TRUE(Parse({}).ok());
  EXPECT_EQ(FLAGS_test_threads, 5);
}

TEST_F(ProgramFlagsTest, WhatIsNoFlagIsNamedWithItsLine) {
  for (const char* name : {"test_thread", "flagfile", "config", "help"}) {
    Write(absl::StrCat("# of a test\n", name, ": 5\n"));
    EXPECT_EQ(Parse({absl::StrCat("--config=", path_)}),
              absl::InvalidArgumentError(absl::StrCat(
                  path_, ":2: \"", name,
                  "\" is no flag that a file can set; see --help.")));
  }
}

TEST_F(ProgramFlagsTest, AValueThatDoesNotParseIsNamedWithItsLine) {
  Write("test_threads: many\n");
  EXPECT_EQ(Parse({absl::StrCat("--config=", path_)}),
            absl::InvalidArgumentError(absl::StrCat(
                path_, ":1: test_threads is \"many\", which is no int32.")));
}

TEST_F(ProgramFlagsTest, AFileThatCanNotBeReadIsNamed) {
  for (const std::string& path :
       {std::string("/nowhere/flags.yaml"), ::testing::TempDir()}) {
    const absl::Status status = Parse({absl::StrCat("--config=", path)});
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()),
                HasSubstr(absl::StrCat("--config is \"", path, "\"")));
  }
}

using ProgramFlagsDeathTest = ProgramFlagsTest;

// What is printed is such a file, too.
TEST_F(ProgramFlagsDeathTest, PrintsWhatIsInForceAndWhereItCameFrom) {
  Write("test_threads: 5\n");
  setenv("LOCKSTEP_TEST_NAME", "of a # kind", 1);
  const auto print = [&] {
    dup2(STDERR_FILENO, STDOUT_FILENO);  // which is what is looked at
    static_cast<void>(Parse(
        {absl::StrCat("--config=", path_), "--print_config", "--notest_fast"}));
  };
  EXPECT_EXIT(print(), ::testing::ExitedWithCode(0),
              absl::StrCat("test_fast: false  # the command line\n"
                           "test_name: \"of a # kind\"  # LOCKSTEP_TEST_NAME\n"
                           "test_threads: 5  # .*flags.yaml:1\n"));
}

}  // namespace
}  // namespace lockstep
