#include "worker/runtime/host_limits.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace lockstep {
namespace {

class ControlGroups : public ::testing::Test {
 protected:
  void Limit(const std::string& path, const std::string& value) {
    std::filesystem::create_directories(root_ + path);
    std::ofstream(root_ + path + "/memory.max") << value << "\n";
  }

  const std::string root_ =
      ::testing::TempDir() + "control_groups_" +
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ControlGroups, TheLeastLimitOnTheWayUpHolds) {
  Limit("/pods", "3000");
  Limit("/pods/one", "max");
  Limit("/pods/one/worker", "5000");
  EXPECT_EQ(ControlGroupMemoryBytes(root_, "/pods/one/worker"), 3000);
  EXPECT_EQ(ControlGroupMemoryBytes(root_, "/pods/one"), 3000);
  Limit("", "1000");
  EXPECT_EQ(ControlGroupMemoryBytes(root_, "/pods/one/worker"), 1000);
}

TEST_F(ControlGroups, WithoutALimitThereIsNone) {
  EXPECT_EQ(ControlGroupMemoryBytes(root_, "/"), std::nullopt);
  Limit("/one", "max");
  EXPECT_EQ(ControlGroupMemoryBytes(root_, "/one"), std::nullopt);
}

TEST(HostLimits, ThisProcessHasACoreAndMemory) {
  EXPECT_FALSE(UsableCores().empty());
  EXPECT_GT(UsableMemoryBytes(), 1 << 20);
}

}  // namespace
}  // namespace lockstep
