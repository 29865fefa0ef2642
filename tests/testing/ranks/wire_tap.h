#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>

namespace lockstep::testing {

// A connection between a leader and a follower with somebody on the line, who
// may change, drop, double or delay what the leader sends.
//
//   WireTap tap([](WireTap::Part part) { return part.bytes; });
//   leader: tap.AcceptLeader(context)    follower: tap.AcceptFollower(context)
//   tap.Start();
//
// What the follower sends passes as it is. When either side closes, so does the
// other. Everything else is the two threads' that the destructor joins.
class WireTap {
 public:
  enum class Kind { kFrame, kMessage, kDigest, kHeartbeat, kFailure };

  // What the leader sends, piece by piece: a header or one message.
  struct Part {
    Kind kind = Kind::kFrame;
    uint64_t step = 0;  // of a frame, its messages and its digest
    std::string bytes;  // with their size
  };

  // Returns the bytes to pass on in place of the part. On a thread of the tap.
  using Change = std::function<std::string(const Part& part)>;

  explicit WireTap(Change change);
  ~WireTap();

  // Each side's own end of the connection.
  boost::asio::ip::tcp::socket ConnectLeader(boost::asio::io_context& context) {
    return Connect(context, &leader_);
  }
  boost::asio::ip::tcp::socket ConnectFollower(
      boost::asio::io_context& context) {
    return Connect(context, &follower_);
  }

  void Start();

 private:
  boost::asio::ip::tcp::socket Connect(boost::asio::io_context& context,
                                       boost::asio::ip::tcp::socket* tap_end);
  void PassFromLeader();
  void PassFromFollower();
  void Close();

  const Change change_;
  boost::asio::io_context context_;
  boost::asio::ip::tcp::socket leader_{context_};
  boost::asio::ip::tcp::socket follower_{context_};
  std::thread from_leader_;
  std::thread from_follower_;
};

}  // namespace lockstep::testing
