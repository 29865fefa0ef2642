#include "common/byte_size.h"

#include <gtest/gtest.h>

#include <limits>

namespace lockstep {
namespace {

TEST(ParseByteSize, IsANumberAndABinaryUnit) {
  EXPECT_EQ(ParseByteSize("0"), 0);
  EXPECT_EQ(ParseByteSize("65536"), 65'536);
  EXPECT_EQ(ParseByteSize("3KiB"), 3 << 10);
  EXPECT_EQ(ParseByteSize("512MiB"), 512 << 20);
  EXPECT_EQ(ParseByteSize("2GiB"), int64_t{2} << 30);
  EXPECT_EQ(ParseByteSize("1TiB"), int64_t{1} << 40);
  EXPECT_EQ(ParseByteSize("9223372036854775807"),
            std::numeric_limits<int64_t>::max());
}

TEST(ParseByteSize, OtherTextIsNone) {
  for (const char* text :
       {"", "MiB", "-1", "+1", " 1", "1 GiB", "1.5GiB", "1GB", "1G", "1gib",
        "1MiBMiB", "0x10", "9223372036854775808", "8388608TiB", "auto"}) {
    EXPECT_EQ(ParseByteSize(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace lockstep
