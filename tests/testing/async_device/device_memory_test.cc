#include "tests/testing/async_device/device_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(DeviceMemory, GivesBackWhatWasWrittenPieceByPiece) {
  DeviceMemory memory(/*num_pages=*/3, /*page_size=*/2);
  const std::vector<int32_t> table = {2, 0};
  memory.Write(table, 0, {5, 6, 7});
  memory.Write(table, 3, {8});
  std::vector<uint32_t> tokens;
  ASSERT_TRUE(memory.Read(table, 4, &tokens).ok());
  EXPECT_THAT(tokens, ElementsAre(5, 6, 7, 8));
}

TEST(DeviceMemory, TellsWhatIsNotThere) {
  DeviceMemory memory(3, 2);
  std::vector<uint32_t> tokens;
  memory.Write({1}, 0, {5});
  const absl::Status status = memory.Read({1}, 2, &tokens);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("page 1 holds position -1 of some sequence instead of "
                        "position 1"));
}

// Equal tokens at equal positions, but not behind the same ones.
TEST(DeviceMemory, TellsAPageOfAnotherSequence) {
  DeviceMemory memory(4, 2);
  memory.Write({0, 1}, 0, {5, 6, 7, 7});
  memory.Write({2, 3}, 0, {5, 9, 7, 7});
  std::vector<uint32_t> tokens;
  EXPECT_TRUE(memory.Read({0, 1}, 4, &tokens).ok());
  EXPECT_FALSE(memory.Read({0, 3}, 4, &tokens).ok());
}

}  // namespace
}  // namespace lockstep::testing
