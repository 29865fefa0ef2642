#pragma once

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {

// The thread "group-io" on which the links between ranks read and write.
// Until Start the context may be run by its owner's own thread, as the
// rendezvous does.
class IoThread {
 public:
  IoThread() = default;
  ~IoThread() { Stop(); }
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  boost::asio::io_context& context() { return context_; }

  void Start();

  // Holds what handlers refer to as long as there may be any. Before Start.
  void Keep(std::shared_ptr<void> object) {
    kept_.push_back(std::move(object));
  }

  // Runs no further handler; returns when none runs. What handlers refer to may
  // then be destroyed.
  void Stop();

 private:
  boost::asio::io_context context_{1};
  std::vector<std::shared_ptr<void>> kept_;  // may hold sockets of context_
  std::optional<
      boost::asio::executor_work_guard<boost::asio::io_context::executor_type>>
      work_;
  std::thread thread_;
};

}  // namespace lockstep
