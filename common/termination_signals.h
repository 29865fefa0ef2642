#pragma once

#include <absl/synchronization/notification.h>
#include <absl/time/time.h>

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <optional>
#include <thread>

namespace lockstep {

// SIGTERM and SIGINT as calls, from its creation to its destruction; after that
// they end the process. Made before a server says that it serves.
//
//   TerminationSignals signals({});
//   …
//   signals.AwaitFirst();
//   …drain; a second signal ends the process…
//
// or, where nobody waits:
//
//   TerminationSignals signals({.grace = absl::Seconds(30),
//                               .begin = …, .hurry = …});
class TerminationSignals {
 public:
  struct Options {
    absl::Duration grace = absl::InfiniteDuration();
    // At the first signal. May be empty.
    std::function<void()> begin;
    // At the second one, or when `grace` has passed since the first. Where it
    // is empty, the second one ends the process.
    std::function<void()> hurry;
    // After `begin`, on the thread "signal-log", which the destructor waits
    // for: what there is to log of it. May be empty.
    std::function<void()> log = nullptr;
  };

  // Both are called on the thread "signals", at most once each. It does not
  // log: a log waits for its reader, and the next signal must not.
  explicit TerminationSignals(Options options);
  ~TerminationSignals();
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;

  void AwaitFirst() { first_.WaitForNotification(); }

  // As the first signal does, where none has come yet; the next one is still
  // the first. Any thread.
  void Begin();

 private:
  void OnFirst();
  void BeginOnce();
  void Hurry();
  void Log(std::function<void()> log);

  const Options options_;
  absl::Notification first_;
  bool has_hurried_ = false;  // of the thread's
  boost::asio::io_context context_{1};
  boost::asio::signal_set signals_;
  boost::asio::steady_timer grace_;
  boost::asio::io_context log_{1};
  // Until the destructor has seen to it that no more comes.
  std::optional<
      boost::asio::executor_work_guard<boost::asio::io_context::executor_type>>
      more_to_log_{log_.get_executor()};
  std::thread thread_;      // "signals"
  std::thread log_thread_;  // "signal-log"
};

// From now on, until one of the other two is used, both signals end this
// process at once with exit code 0, after a line that says so: it serves
// nobody yet. `program` outlives the process.
void ExitAtTermination(const char* program);

// Both signals have no effect on this process from now on: a follower's, which
// leaves when its leader says so or is gone.
void IgnoreTerminationSignals();

}  // namespace lockstep
