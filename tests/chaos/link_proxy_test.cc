#include "tests/chaos/link_proxy.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <bit>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/write.hpp>
#include <cstdint>
#include <memory>
#include <string>

namespace lockstep::testing {
namespace {

using boost::asio::ip::tcp;

class LinkProxyTest : public ::testing::Test {
 protected:
  LinkProxyTest()
      : acceptor_(context_,
                  tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0)),
        follower_(context_),
        leader_(context_),
        proxy_(*LinkProxy::Start(
            absl::StrCat("127.0.0.1:", acceptor_.local_endpoint().port()),
            /*seed=*/1)) {
    const std::string address = proxy_->address();
    const int port = std::stoi(address.substr(address.rfind(':') + 1));
    follower_.connect(
        {boost::asio::ip::address_v4::loopback(), static_cast<uint16_t>(port)});
    acceptor_.accept(leader_);
  }

  static void Send(tcp::socket& from, const std::string& bytes) {
    boost::asio::write(from, boost::asio::buffer(bytes));
  }

  // Empty at the end of the connection.
  static std::string Receive(tcp::socket& to, size_t size) {
    std::string bytes(size, '\0');
    boost::system::error_code error;
    bytes.resize(boost::asio::read(to, boost::asio::buffer(bytes), error));
    return bytes;
  }

  boost::asio::io_context context_;
  tcp::acceptor acceptor_;
  tcp::socket follower_, leader_;
  std::unique_ptr<LinkProxy> proxy_;
};

TEST_F(LinkProxyTest, PassesOnInBothDirections) {
  Send(leader_, "frame");
  EXPECT_EQ(Receive(follower_, 5), "frame");
  Send(follower_, "hello");
  EXPECT_EQ(Receive(leader_, 5), "hello");
}

TEST_F(LinkProxyTest, FlipsOneBitOfEachOfTheNextTwoReads) {
  proxy_->Break(LinkProxy::Fault::kFlipBit);
  Send(follower_, "hello");
  EXPECT_EQ(Receive(leader_, 5), "hello");
  for (int read = 0; read < 2; ++read) {
    Send(leader_, "frame");
    const std::string received = Receive(follower_, 5);
    int flipped = 0;
    for (int i = 0; i < 5; ++i) {
      flipped += std::popcount(static_cast<uint8_t>(received[i] ^ "frame"[i]));
    }
    EXPECT_EQ(flipped, 1);
  }
  Send(leader_, "after");
  EXPECT_EQ(Receive(follower_, 5), "after");
}

TEST_F(LinkProxyTest, DoublesWhatTheLeaderSendsNext) {
  proxy_->Break(LinkProxy::Fault::kDouble);
  Send(follower_, "1");  // when it is there, so is the fault
  EXPECT_EQ(Receive(leader_, 1), "1");
  Send(leader_, "frame");
  EXPECT_EQ(Receive(follower_, 10), "frameframe");
}

TEST_F(LinkProxyTest, DropsWhatTheLeaderSendsNext) {
  proxy_->Break(LinkProxy::Fault::kDrop);
  Send(follower_, "1");
  EXPECT_EQ(Receive(leader_, 1), "1");
  Send(leader_, "lost");
  while (follower_.available() == 0) Send(leader_, "x");
  EXPECT_EQ(Receive(follower_, 1), "x");
}

TEST_F(LinkProxyTest, CutsBothConnections) {
  proxy_->Break(LinkProxy::Fault::kCut);
  EXPECT_EQ(Receive(follower_, 1), "");
  EXPECT_EQ(Receive(leader_, 1), "");
}

}  // namespace
}  // namespace lockstep::testing
