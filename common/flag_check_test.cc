#include "common/flag_check.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(FlagCheck, AnAddressHasAHostAndAPort) {
  for (const char* address : {"host:1", "127.0.0.1:65535", "[::1]:50051"}) {
    EXPECT_TRUE(CheckAddressFlag("listen", address, 0).ok()) << address;
  }
  for (const char* address :
       {"", "host", ":5", "host:", "host:x", "host:-1", "host:65536",
        "host:99999999999", "[]:5", "host: 5", "host:+5"}) {
    EXPECT_EQ(CheckAddressFlag("listen", address, 0),
              absl::InvalidArgumentError(absl::StrCat(
                  "--listen is \"", address,
                  "\"; it must be host:port with a port of 0 to 65535.")));
  }
}

TEST(FlagCheck, PortZeroIsOnlyToListenOn) {
  EXPECT_TRUE(CheckAddressFlag("listen", "host:0", 0).ok());
  EXPECT_EQ(
      CheckAddressFlag("worker_address", "host:0", 1),
      absl::InvalidArgumentError("--worker_address is \"host:0\"; it must "
                                 "be host:port with a port of 1 to "
                                 "65535."));
}

TEST(FlagCheck, ARangeHoldsItsEnds) {
  EXPECT_TRUE(CheckRangeFlag("threads", 1, 1, 3).ok());
  EXPECT_TRUE(CheckRangeFlag("threads", 3, 1, 3).ok());
  EXPECT_EQ(CheckRangeFlag("threads", 4, 1, 3),
            absl::InvalidArgumentError("--threads is 4; it must be 1 to 3."));
}

}  // namespace
}  // namespace lockstep
