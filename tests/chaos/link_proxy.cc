#include "tests/chaos/link_proxy.h"

#include <absl/strings/str_cat.h>
#include <pthread.h>

#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

namespace lockstep::testing {

namespace asio = boost::asio;

namespace {

// A step takes milliseconds, a heartbeat comes twice a second. More would drop
// so many of these that the leader seems silent.
constexpr int kDistortedReads = 2;

}  // namespace

using asio::ip::tcp;
using boost::system::error_code;

absl::StatusOr<std::unique_ptr<LinkProxy>> LinkProxy::Start(
    const std::string& leader_address, uint64_t seed) {
  const size_t colon = leader_address.rfind(':');
  error_code error;
  const auto host =
      asio::ip::make_address(leader_address.substr(0, colon), error);
  const int port = std::atoi(leader_address.c_str() + colon + 1);
  if (error.failed() || port <= 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", leader_address, "\" is no address to pass on to."));
  }
  return std::unique_ptr<LinkProxy>(
      new LinkProxy(tcp::endpoint(host, static_cast<uint16_t>(port)), seed));
}

LinkProxy::LinkProxy(tcp::endpoint leader, uint64_t seed)
    : random_(seed),
      leader_address_(std::move(leader)),
      acceptor_(context_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
      follower_(context_),
      leader_(context_) {
  to_follower_.from = to_leader_.to = &leader_;
  to_follower_.to = to_leader_.from = &follower_;
  to_follower_.is_leaders = true;
  Accept();
  thread_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "proxy");
    const auto work = asio::make_work_guard(context_);
    context_.run();
  });
}

LinkProxy::~LinkProxy() {
  context_.stop();
  thread_.join();
}

std::string LinkProxy::address() const {
  return absl::StrCat("127.0.0.1:", acceptor_.local_endpoint().port());
}

void LinkProxy::Accept() {
  acceptor_.async_accept(follower_, [this](const error_code& error) {
    if (error) return;
    leader_.async_connect(leader_address_, [this](const error_code& refused) {
      if (refused) return Close();
      for (Socket* const socket : {&follower_, &leader_}) {
        error_code ignored;
        socket->set_option(tcp::no_delay(true), ignored);
      }
      Pass(to_follower_);
      Pass(to_leader_);
    });
  });
}

void LinkProxy::Pass(Direction& direction) {
  direction.from->async_read_some(
      asio::buffer(direction.read),
      [this, &direction](const error_code& error, size_t size) {
        if (error) return Close();
        direction.passed_on.assign(direction.read.data(), size);
        if (fault_ == Fault::kSilence) {
          direction.passed_on.clear();
        } else if (direction.is_leaders) {
          direction.passed_on = Distort(direction.passed_on);
        }
        asio::async_write(*direction.to, asio::buffer(direction.passed_on),
                          [this, &direction](const error_code& gone, size_t) {
                            if (gone) return Close();
                            Pass(direction);
                          });
      });
}

std::string LinkProxy::Distort(const std::string& bytes) {
  if (reads_left_ == 0) return bytes;
  --reads_left_;
  switch (fault_) {
    case Fault::kFlipBit: {
      std::string flipped = bytes;
      const size_t bit = random_() % (8 * bytes.size());
      flipped[bit / 8] = static_cast<char>(flipped[bit / 8] ^ 1 << bit % 8);
      return flipped;
    }
    case Fault::kDouble:
      return bytes + bytes;
    case Fault::kDrop:
      return "";
    default:
      return bytes;
  }
}

void LinkProxy::Break(Fault fault) {
  asio::post(context_, [this, fault] {
    fault_ = fault;
    reads_left_ = kDistortedReads;
    if (fault == Fault::kCut) Close();
  });
}

void LinkProxy::Close() {
  for (Socket* const socket : {&follower_, &leader_}) {
    error_code ignored;
    socket->close(ignored);
  }
}

}  // namespace lockstep::testing
