#pragma once

#include <absl/time/time.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>

namespace lockstep {

// Calls `beat` again and again, an interval after the last call has ended. The
// calls of a process that was stopped do not pile up: their number is a measure
// of the time that this process has run, which no clock is.
//
//   HeartbeatTimer timer(io.context(), interval, [&] { … });
//   timer.Start();  // before the I/O thread runs, or on it
//
// `beat` runs on the I/O thread, on which the other calls are made too. The
// timer is destroyed after that was stopped.
class HeartbeatTimer {
 public:
  HeartbeatTimer(boost::asio::io_context& context, absl::Duration interval,
                 std::function<void()> beat);

  void Start();

  // No further call begins.
  void Stop() { stopped_ = true; }

  // Whether a call came late, by several intervals, within the last `window` or
  // is so now: others may have missed this process.
  bool WasLate(absl::Duration window) const;

 private:
  using Clock = std::chrono::steady_clock;

  bool IsLate(Clock::time_point now) const;
  void Wait();

  const absl::Duration interval_;
  const std::function<void()> beat_;
  boost::asio::steady_timer timer_;
  bool stopped_ = false;
  Clock::time_point due_;                              // the next call
  Clock::time_point late_ = Clock::time_point::min();  // the last late call
};

}  // namespace lockstep
