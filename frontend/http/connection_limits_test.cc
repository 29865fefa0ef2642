#include "frontend/http/connection_limits.h"

#include <gtest/gtest.h>

#include <boost/asio/ip/address.hpp>
#include <vector>

namespace lockstep::http {
namespace {

boost::asio::ip::address Address(const char* text) {
  return boost::asio::ip::make_address(text);
}

TEST(ConnectionLimits, APlaceIsGivenBack) {
  ConnectionLimits limits(/*total=*/2, /*per_address=*/0);
  auto first = limits.Enter(Address("10.0.0.1"));
  const auto second = limits.Enter(Address("10.0.0.1"));
  ASSERT_TRUE(first.has_value() && second.has_value());
  EXPECT_FALSE(limits.Enter(Address("10.0.0.2")).has_value());
  EXPECT_EQ(limits.number(), 2);
  first.reset();
  EXPECT_EQ(limits.number(), 1);
  EXPECT_TRUE(limits.Enter(Address("10.0.0.2")).has_value());
}

TEST(ConnectionLimits, AnAddressHasALimitOfItsOwn) {
  ConnectionLimits limits(/*total=*/100, /*per_address=*/2);
  std::vector<ConnectionLimits::Place> places;
  for (int i = 0; i < 2; ++i) {
    places.push_back(*limits.Enter(Address("10.0.0.1")));
  }
  EXPECT_FALSE(limits.Enter(Address("10.0.0.1")).has_value());
  EXPECT_FALSE(limits.Enter(Address("::ffff:10.0.0.1")).has_value());
  EXPECT_TRUE(limits.Enter(Address("10.0.0.2")).has_value());
  places.pop_back();
  EXPECT_TRUE(limits.Enter(Address("10.0.0.1")).has_value());
}

TEST(ConnectionLimits, ANetworkOfIpv6IsOneAddress) {
  ConnectionLimits limits(/*total=*/100, /*per_address=*/1);
  const auto place = limits.Enter(Address("2001:db8:0:1::1"));
  EXPECT_FALSE(limits.Enter(Address("2001:db8:0:1:ffff::2")).has_value());
  EXPECT_TRUE(limits.Enter(Address("2001:db8:0:2::1")).has_value());
}

}  // namespace
}  // namespace lockstep::http
