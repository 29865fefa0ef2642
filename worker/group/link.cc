#include "worker/group/link.h"

#include <absl/strings/str_cat.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "common/time/steady_wait.h"

namespace lockstep {
namespace {

using boost::system::error_code;

// Together: a host that went away without a word is noticed in about 2 s, be
// the connection idle or not.
constexpr int kKeepAliveIdleS = 1;
constexpr int kKeepAliveIntervalS = 1;
constexpr int kKeepAliveProbes = 2;
constexpr int kUnacknowledgedMs = 2000;

absl::Status WhyClosed(const error_code& error) {
  if (error == boost::asio::error::eof) {
    return absl::UnavailableError("it closed the connection");
  }
  return absl::UnavailableError(
      absl::StrCat("its connection was lost (", error.message(), ")"));
}

}  // namespace

Link::Link(boost::asio::ip::tcp::socket socket, const Options& options,
           OnBytes on_bytes, OnClosed on_closed)
    : options_(options),
      on_bytes_(std::move(on_bytes)),
      on_closed_(std::move(on_closed)),
      socket_(std::move(socket)) {}

void Link::Start() {
  boost::asio::post(socket_.get_executor(), [this] { Read(); });
}

absl::Status Link::Send(absl::string_view bytes) {
  std::lock_guard lock(mutex_);
  if (closed_) return absl::UnavailableError("its connection was lost");
  const size_t behind = writing_bytes_ + unsent_.size();
  if (behind + bytes.size() > options_.max_unsent_bytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("it is ", behind, " bytes behind; the limit is ",
                     options_.max_unsent_bytes));
  }
  unsent_.append(bytes.data(), bytes.size());
  if (!is_writing_) {
    is_writing_ = true;
    boost::asio::post(socket_.get_executor(), [this] { Write(); });
  }
  return absl::OkStatus();
}

bool Link::WaitUntilSent(absl::Duration timeout) {
  std::unique_lock lock(mutex_);
  const auto done = [this] { return closed_ || !is_writing_; };
  return WaitFor(changed_, lock, timeout, done) && !closed_;
}

void Link::Read() {
  socket_.async_read_some(
      boost::asio::buffer(read_buffer_),
      [this](const error_code& error, size_t size) {
        if (error) return Close(WhyClosed(error));
        on_bytes_(absl::string_view(read_buffer_.data(), size));
        Read();
      });
}

void Link::Write() {
  {
    std::lock_guard lock(mutex_);
    writing_.clear();
    writing_.swap(unsent_);
    writing_bytes_ = writing_.size();
    is_writing_ = !writing_.empty();
  }
  if (writing_.empty()) return changed_.notify_all();
  boost::asio::async_write(socket_, boost::asio::buffer(writing_),
                           [this](const error_code& error, size_t) {
                             // The peer's last words may still wait to be
                             // read; the reader sees the end after them.
                             if (error) return StopSending();
                             Write();
                           });
}

void Link::StopSending() {
  {
    std::lock_guard lock(mutex_);
    closed_ = true;
    is_writing_ = false;
  }
  changed_.notify_all();
}

void Link::Close(const absl::Status& why) {
  StopSending();
  error_code ignored;
  socket_.close(ignored);
  on_closed_(why);
}

void ConfigureSocket(boost::asio::ip::tcp::socket& socket) {
  const auto set = [&](int level, int name, int value) {
    setsockopt(socket.native_handle(), level, name, &value, sizeof(value));
  };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, kKeepAliveIdleS);
  set(IPPROTO_TCP, TCP_KEEPINTVL, kKeepAliveIntervalS);
  set(IPPROTO_TCP, TCP_KEEPCNT, kKeepAliveProbes);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, kUnacknowledgedMs);
}

}  // namespace lockstep
