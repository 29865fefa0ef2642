#include "worker/runtime/host_limits.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

namespace lockstep {
namespace {

class ControlGroups : public ::testing::Test {
 protected:
  void Limit(const std::string& file, const std::string& value) {
    const std::filesystem::path path = mount_ + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << value << "\n";
  }

  std::optional<int64_t> Bytes(const std::string& membership) const {
    return ControlGroupMemoryBytes(mount_, membership);
  }

  const std::string mount_ =
      ::testing::TempDir() + "control_groups_" +
      ::testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(ControlGroups, TheLeastLimitOnTheWayUpHolds) {
  Limit("/pods/memory.max", "3000");
  Limit("/pods/one/memory.max", "max");
  Limit("/pods/one/worker/memory.max", "5000");
  EXPECT_EQ(Bytes("0::/pods/one/worker\n"), 3000);
  EXPECT_EQ(Bytes("0::/pods/one\n"), 3000);
  Limit("/memory.max", "1000");
  EXPECT_EQ(Bytes("0::/pods/one/worker\n"), 1000);
}

TEST_F(ControlGroups, Version1LimitsTheSameWay) {
  Limit("/memory/memory.limit_in_bytes", "9223372036854771712");
  Limit("/memory/pods/memory.limit_in_bytes", "3000");
  Limit("/memory/pods/worker/memory.limit_in_bytes", "5000");
  EXPECT_EQ(Bytes("9:name=systemd:/\n4:cpu,memory:/pods/worker\n0::/\n"), 3000);
  EXPECT_EQ(Bytes("4:memory:/pods\n"), 3000);
  EXPECT_EQ(Bytes("4:memory:/other\n"), std::nullopt);
  // Another controller's group has nothing to do with memory.
  EXPECT_EQ(Bytes("1:cpu:/pods/worker\n"), std::nullopt);
}

TEST_F(ControlGroups, OfBothVersionsTheLesserHolds) {
  Limit("/memory/one/memory.limit_in_bytes", "3000");
  Limit("/two/memory.max", "2000");
  EXPECT_EQ(Bytes("4:memory:/one\n0::/two\n"), 2000);
}

TEST_F(ControlGroups, AContainerSeesItsLimitAtTheMount) {
  Limit("/memory.max", "2000");
  EXPECT_EQ(Bytes("0::/host/container\n"), 2000);
  EXPECT_EQ(Bytes("0::/../sibling:of/it\n"), 2000);
}

TEST_F(ControlGroups, WithoutALimitThereIsNone) {
  EXPECT_EQ(Bytes("0::/\n"), std::nullopt);
  EXPECT_EQ(Bytes(""), std::nullopt);
  Limit("/one/memory.max", "max");
  EXPECT_EQ(Bytes("0::/one\n"), std::nullopt);
}

TEST(HostLimits, ThisProcessHasACoreAndMemory) {
  EXPECT_FALSE(UsableCores().empty());
  EXPECT_GT(UsableMemoryBytes(), 1 << 20);
}

}  // namespace
}  // namespace lockstep
