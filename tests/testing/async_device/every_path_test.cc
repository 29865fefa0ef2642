#include "tests/testing/async_device/every_path.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;

TEST(EveryPath, IsTakenOnce) {
  EveryPath path;
  std::vector<std::string> taken;
  do {
    std::string decisions;
    while (decisions.size() < 3 && path.Choose(2) == 0) decisions += 'a';
    if (decisions.empty()) decisions += path.Choose(1) == 0 ? 'b' : 'c';
    taken.push_back(decisions);
  } while (path.Next());
  EXPECT_THAT(taken, ElementsAre("aaa", "aa", "a", "b"));
}

}  // namespace
}  // namespace lockstep::testing
