#include "worker/group/address.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lockstep {
namespace {

using ::testing::HasSubstr;

TEST(ParseHostPort, SplitsAtTheLastColon) {
  EXPECT_EQ(ParseHostPort("node-3:7000", "f")->host, "node-3");
  EXPECT_EQ(ParseHostPort("node-3:7000", "f")->port, 7000);
  EXPECT_EQ(ParseHostPort("[::1]:0", "f")->host, "::1");
  EXPECT_EQ(ParseHostPort("[::1]:0", "f")->port, 0);
}

TEST(ParseHostPort, NamesTheFlagAndTheValue) {
  for (const char* const address : {"", "host", ":7000", "host:", "host:x",
                                    "host:70000", "host:-1", "[]:7000"}) {
    const auto result = ParseHostPort(address, "leader_address");
    ASSERT_FALSE(result.ok()) << address;
    EXPECT_EQ(result.status().message().find("--leader_address is \"" +
                                             std::string(address) + "\""),
              0);
  }
}

TEST(Resolve, FindsALiteralAddress) {
  boost::asio::io_context context;
  const auto endpoint = Resolve(context, "127.0.0.1:7000", "leader_address");
  ASSERT_TRUE(endpoint.ok());
  EXPECT_EQ(endpoint->port(), 7000);
  EXPECT_TRUE(endpoint->address().is_loopback());
}

TEST(HostTowards, IsThisHostsAddressOnThatWay) {
  EXPECT_EQ(*HostTowards("127.0.0.1:0", "leader_address"), "127.0.0.1");
  // All of 127/8 is this host's; it is called by what it calls.
  EXPECT_EQ(*HostTowards("127.0.0.2:7000", "leader_address"), "127.0.0.1");
}

TEST(WaitUntilKnown, EndsAtOnceOrWithWhatItWaitedFor) {
  EXPECT_TRUE(
      WaitUntilKnown("127.0.0.1:1", "leader_address", absl::Hours(1)).ok());
  EXPECT_EQ(
      WaitUntilKnown("127.0.0.1", "leader_address", absl::Hours(1)).code(),
      absl::StatusCode::kInvalidArgument);
  const absl::Status unknown = WaitUntilKnown(
      "nobody.invalid:1", "leader_address", absl::Milliseconds(300));
  EXPECT_EQ(unknown.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(unknown.message(),
              HasSubstr("cannot find the host \"nobody.invalid\" of "
                        "--leader_address"));
}

TEST(HostTowards, AnAddressThatIsEveryHostsIsRefused) {
  EXPECT_EQ(HostTowards("0.0.0.0:7000", "leader_address").status(),
            absl::InvalidArgumentError(
                "--leader_address is \"0.0.0.0:7000\"; with --collective=gloo "
                "it must be an address that the other hosts reach."));
}

TEST(CheckCanListen, NamesTheFlagWhenTheAddressIsInUse) {
  EXPECT_TRUE(CheckCanListen("127.0.0.1:0", "listen").ok());
  boost::asio::io_context context;
  const boost::asio::ip::tcp::acceptor taken(
      context, {boost::asio::ip::address_v4::loopback(), 0});
  const auto status = CheckCanListen(
      "127.0.0.1:" + std::to_string(taken.local_endpoint().port()), "listen");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_NE(status.message().find("choose another with --listen"),
            absl::string_view::npos);
}

}  // namespace
}  // namespace lockstep
