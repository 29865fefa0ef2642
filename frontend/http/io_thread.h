#pragma once

#include <absl/time/time.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "frontend/http/session.h"

namespace lockstep::http {

// A thread and its connections.
//
//   IoThread thread("http-0", context, &connections);
//   thread.Adopt(std::move(socket));    // any thread
//   thread.Shutdown(absl::Seconds(1));
//   thread.Join();
class IoThread {
 public:
  // `connections` is counted up and down; it must outlive this.
  IoThread(const std::string& name, SessionContext context,
           std::atomic<int>* connections);
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  boost::asio::io_context& io() { return io_; }

  // Of a socket on io(). The connection is counted already.
  void Adopt(boost::asio::ip::tcp::socket socket);

  void Drain();
  // Begins; the end comes once the last connection has closed, at the latest
  // after `grace`.
  void Shutdown(absl::Duration grace);
  void Join();  // once, after Shutdown

 private:
  void ForEach(void (Session::*what)());
  void EndIfIdle();

  std::vector<char> scratch_;
  SessionContext context_;
  std::atomic<int>* const connections_;
  boost::asio::io_context io_{1};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type>
      work_{io_.get_executor()};
  boost::asio::steady_timer grace_{io_};
  bool is_ending_ = false;  // of the thread
  std::unordered_map<Session*, std::shared_ptr<Session>> sessions_;
  std::thread thread_;
};

}  // namespace lockstep::http
