#include "tests/testing/ranks/wire_tap.h"

#include <glog/logging.h>
#include <sys/socket.h>

#include <array>
#include <boost/asio/write.hpp>
#include <utility>

#include "worker/group/frame_codec.h"

namespace lockstep::testing {
namespace {

using boost::asio::ip::tcp;
using boost::system::error_code;

WireTap::Part Parse(const std::string& bytes, uint32_t* messages_left,
                    uint64_t* step) {
  WireTap::Part part;
  AppendSized(bytes, &part.bytes);
  if (*messages_left > 0) {
    --*messages_left;
    part.kind = WireTap::Kind::kMessage;
  } else {
    v1::FrameHeader header;
    CHECK(header.ParseFromString(bytes));
    if (header.has_failure()) {
      part.kind = WireTap::Kind::kFailure;
    } else if (header.has_heartbeat()) {
      part.kind = WireTap::Kind::kHeartbeat;
    } else {
      part.kind = header.digest().empty() ? WireTap::Kind::kFrame
                                          : WireTap::Kind::kDigest;
      *messages_left = header.message_count();
      *step = header.step();
    }
  }
  part.step = *step;
  return part;
}

}  // namespace

WireTap::WireTap(Change change) : change_(std::move(change)) {}

WireTap::~WireTap() {
  Close();
  if (from_leader_.joinable()) from_leader_.join();
  if (from_follower_.joinable()) from_follower_.join();
}

tcp::socket WireTap::Connect(boost::asio::io_context& context,
                             tcp::socket* tap_end) {
  tcp::acceptor acceptor(
      context, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
  tap_end->connect(acceptor.local_endpoint());
  return acceptor.accept();
}

void WireTap::Start() {
  from_leader_ = std::thread([this] { PassFromLeader(); });
  from_follower_ = std::thread([this] { PassFromFollower(); });
}

void WireTap::PassFromLeader() {
  std::string received;
  uint32_t messages_left = 0;
  uint64_t step = 0;
  std::array<char, 4096> buffer;
  error_code error;
  while (!error) {
    const size_t size = leader_.read_some(boost::asio::buffer(buffer), error);
    received.append(buffer.data(), size);
    while (!error) {
      auto bytes = TakeSized(kMaxMessageBytesOfFrame, &received);
      CHECK(bytes.ok()) << bytes.status();
      if (!bytes->has_value()) break;
      const std::string changed =
          change_(Parse(**bytes, &messages_left, &step));
      boost::asio::write(follower_, boost::asio::buffer(changed), error);
    }
  }
  Close();
}

void WireTap::PassFromFollower() {
  std::array<char, 4096> buffer;
  error_code error;
  while (!error) {
    const size_t size = follower_.read_some(boost::asio::buffer(buffer), error);
    if (error) break;
    boost::asio::write(leader_, boost::asio::buffer(buffer.data(), size),
                       error);
  }
  Close();
}

// By the system's own call, which is legal while another thread reads.
void WireTap::Close() {
  shutdown(leader_.native_handle(), SHUT_RDWR);
  shutdown(follower_.native_handle(), SHUT_RDWR);
}

}  // namespace lockstep::testing
