#pragma once

#include <absl/time/time.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "common/metrics/histogram.h"
#include "frontend/http/connection_limits.h"
#include "frontend/http/session.h"
#include "frontend/http/tls_contexts.h"

namespace lockstep::http {

// A thread and its connections.
//
//   IoThread thread("http-0", context, tls);
//   thread.Adopt(std::move(socket), std::move(place));    // any thread
//   thread.Shutdown(absl::Seconds(1));
//   thread.Join();
class IoThread {
 public:
  // `tls` must outlive this; null: connections are as they come.
  IoThread(const std::string& name, SessionContext context, TlsContexts* tls);
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  boost::asio::io_context& io() { return io_; }

  // How late the thread came to a timer, which it has ten of a second. What is
  // long here held up all its connections.
  const Histogram& lag() const { return lag_; }

  // Of a socket on io(). Keeps its place as long as the connection.
  void Adopt(boost::asio::ip::tcp::socket socket,
             ConnectionLimits::Place place);

  void Drain();
  // Begins; the end comes once the last connection has closed, which is when
  // its answer has gone, at the latest after `grace`.
  void Shutdown(absl::Duration grace);
  void Join();  // once, after Shutdown

 private:
  struct Connection {
    std::shared_ptr<Session> session;
    ConnectionLimits::Place place;
  };

  void Begin(boost::asio::ip::tcp::socket socket,
             ConnectionLimits::Place place);
  void ForEach(void (Session::*what)());
  void EndIfIdle();
  void MeasureLag();

  std::vector<char> scratch_;
  SessionContext context_;
  TlsContexts* const tls_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type>
      work_{io_.get_executor()};
  boost::asio::steady_timer grace_{io_};
  boost::asio::steady_timer canary_{io_};
  Histogram lag_{kShortBounds};
  bool is_ending_ = false;  // of the thread
  std::unordered_map<Session*, Connection> connections_;
  std::thread thread_;
};

}  // namespace lockstep::http
