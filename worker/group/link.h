#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <array>
#include <boost/asio/ip/tcp.hpp>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>

namespace lockstep {

// The connection to another rank. It always reads, so that the end of the peer
// is seen at once, whatever this rank is busy with.
//
//   Link link(std::move(socket), options, on_bytes, on_closed);
//   link.Start();
//   LOCKSTEP_RETURN_IF_ERROR(link.Send(bytes));  // never blocks
//
// The callbacks run on the socket's I/O thread, on_closed once and last. The
// link is destroyed only after that thread was stopped.
class Link {
 public:
  struct Options {
    // A peer that is further behind than this has failed.
    size_t max_unsent_bytes = size_t{256} << 20;
  };

  using OnBytes = std::function<void(absl::string_view bytes)>;
  // With a sentence on why.
  using OnClosed = std::function<void(const absl::Status& why)>;

  Link(boost::asio::ip::tcp::socket socket, const Options& options,
       OnBytes on_bytes, OnClosed on_closed);

  // Begins to read. Before it nothing is sent either.
  void Start();

  // Puts the bytes in the queue. RESOURCE_EXHAUSTED when it holds too much
  // already, UNAVAILABLE when the link is closed. Any thread.
  absl::Status Send(absl::string_view bytes);

  // Waits until all was handed to the system; false when that took too long or
  // the link is closed. Not on the I/O thread.
  bool WaitUntilSent(absl::Duration timeout);

 private:
  void Read();
  void Write();  // what is in unsent_; on the I/O thread
  void StopSending();
  void Close(const absl::Status& why);  // at the end of reading

  const Options options_;
  const OnBytes on_bytes_;
  const OnClosed on_closed_;

  // On the I/O thread.
  boost::asio::ip::tcp::socket socket_;
  std::array<char, 64 << 10> read_buffer_;
  std::string writing_;

  // Not absl's: see common/time/steady_wait.h. Guards all below.
  mutable std::mutex mutex_;
  std::condition_variable changed_;  // of the last two
  std::string unsent_;
  size_t writing_bytes_ = 0;  // of writing_
  bool is_writing_ = false;
  bool closed_ = false;  // for sending
};

// Small messages leave at once, and a host that is gone is noticed within
// seconds.
void ConfigureSocket(boost::asio::ip::tcp::socket& socket);

}  // namespace lockstep
