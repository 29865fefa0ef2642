#pragma once

#include <absl/status/statusor.h>

#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <thread>

namespace lockstep::testing {

// A network between one follower and its leader that can be broken: it passes
// bytes on in both directions until it is told otherwise.
//
//   auto proxy = LinkProxy::Start("127.0.0.1:7000");
//   …a follower with --leader_address=(*proxy)->address()…
//   (*proxy)->Break(LinkProxy::Fault::kFlipBit);
//
// Break may come from any thread. It works on a thread of its own, "proxy",
// which the destructor ends and joins.
class LinkProxy {
 public:
  enum class Fault {
    kNone,
    // To each of the next two reads of what the leader sends: one of them is of
    // a frame, and not of a heartbeat.
    kFlipBit,  // one bit is another
    kDouble,   // it comes twice
    kDrop,     // it does not come
    kCut,      // both connections are closed
    kSilence,  // nothing is passed on any more
  };

  // For one connection. Where in the bytes a fault happens is drawn from
  // `seed`.
  static absl::StatusOr<std::unique_ptr<LinkProxy>> Start(
      const std::string& leader_address, uint64_t seed);
  ~LinkProxy();
  LinkProxy(const LinkProxy&) = delete;
  LinkProxy& operator=(const LinkProxy&) = delete;

  std::string address() const;

  void Break(Fault fault);

 private:
  using Socket = boost::asio::ip::tcp::socket;
  struct Direction {
    Socket* from = nullptr;
    Socket* to = nullptr;
    bool is_leaders = false;
    std::array<char, 16 << 10> read = {};
    std::string passed_on;
  };

  LinkProxy(boost::asio::ip::tcp::endpoint leader, uint64_t seed);
  void Accept();
  void Pass(Direction& direction);
  // What is passed on instead of `bytes`.
  std::string Distort(const std::string& bytes);
  void Close();

  // All of it is the thread's.
  std::mt19937_64 random_;
  Fault fault_ = Fault::kNone;
  int reads_left_ = 0;  // to distort
  const boost::asio::ip::tcp::endpoint leader_address_;
  boost::asio::io_context context_{1};
  boost::asio::ip::tcp::acceptor acceptor_;
  Socket follower_, leader_;
  Direction to_follower_, to_leader_;
  std::thread thread_;
};

}  // namespace lockstep::testing
