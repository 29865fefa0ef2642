#include "tests/simulation/child.h"

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

namespace lockstep::testing {
namespace {

TEST(Child, GivesItsResult) {
  const std::string large(1 << 20, 'x');
  Child child([&](uint64_t* progress) {
    *progress = 7;
    return large;
  });
  EXPECT_EQ(*child.Join(), large);
  EXPECT_EQ(child.progress(), 7);
}

TEST(Child, ACrashIsAResultToo) {
  Child child([](uint64_t* progress) {
    *progress = 3;
    CHECK_EQ(1, 2) << "the last words";
    return std::string();
  });
  const auto result = child.Join();
  EXPECT_EQ(result.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(result.status().message()),
              ::testing::HasSubstr("the last words"));
  EXPECT_EQ(child.progress(), 3);
}

TEST(Child, AnExceptionIsACrash) {
  Child child([](uint64_t*) -> std::string {
    throw std::runtime_error("thrown in the child");
  });
  EXPECT_THAT(std::string(child.Join().status().message()),
              ::testing::HasSubstr("thrown in the child"));
}

}  // namespace
}  // namespace lockstep::testing
