#include "bench/rival.h"

#include <absl/status/status.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep::bench {
namespace {

using ::testing::HasSubstr;

TEST(Rival, PrintsItsTokensPerSecond) {
  const auto rate =
      RunRival("test {workload} = pp512 && test {model} = m.gguf && echo 12.5",
               "pp512", "m.gguf");
  ASSERT_TRUE(rate.ok()) << rate.status();
  EXPECT_EQ(*rate, 12.5);
}

TEST(Rival, ThatPrintsNoNumberOrFailsIsAnError) {
  for (const char* command :
       {"echo fast", "echo", "echo 1 2", "echo 0", "echo 5; exit 3"}) {
    const auto rate = RunRival(command, "pp512", "m.gguf");
    EXPECT_EQ(rate.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(rate.status().message(), HasSubstr(command));
  }
}

}  // namespace
}  // namespace lockstep::bench
