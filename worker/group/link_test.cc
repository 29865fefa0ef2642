#include "worker/group/link.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/io_context.hpp>
#include <string>
#include <utility>

namespace lockstep {
namespace {

using boost::asio::ip::tcp;
using ::testing::HasSubstr;

// More than the system buffers for a connection.
constexpr size_t kLarge = 16 << 20;

TEST(Link, WhatIsBeingWrittenCountsAsUnsent) {
  boost::asio::io_context context;
  tcp::acceptor acceptor(
      context, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  tcp::socket silent(context);  // reads nothing
  silent.connect(acceptor.local_endpoint());
  Link link(
      acceptor.accept(), {.max_unsent_bytes = kLarge}, [](absl::string_view) {},
      [](const absl::Status&) {});
  const std::string bytes(kLarge, 'x');
  ASSERT_TRUE(link.Send(bytes).ok());
  EXPECT_FALSE(link.Send("y").ok());
  context.poll();  // begins to write, and can not end
  const absl::Status full = link.Send("y");
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(full.message()),
              HasSubstr("it is 16777216 bytes behind; the limit is 16777216"));
}

}  // namespace
}  // namespace lockstep
