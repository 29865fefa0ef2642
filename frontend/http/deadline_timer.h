#pragma once

#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <utility>

namespace lockstep::http {

// One deadline that is moved often and met seldom: moving it later costs
// nothing, as the timer looks at it only when it would have been met.
//
//   DeadlineTimer timer(executor, [self] { … });
//   timer.Set(std::chrono::seconds(10));
//
// Of one thread, the executor's; `met` is called on it.
class DeadlineTimer {
 public:
  using Clock = std::chrono::steady_clock;

  explicit DeadlineTimer(boost::asio::any_io_executor executor)
      : timer_(std::move(executor)) {}

  // Once, before Set. What keeps the owner alive is given to each wait.
  void Start(std::function<std::shared_ptr<void>()> hold,
             std::function<void()> met) {
    hold_ = std::move(hold);
    met_ = std::move(met);
  }

  void Set(Clock::duration after) {
    deadline_ = Clock::now() + after;
    if (!armed_ || deadline_ < timer_.expiry()) Arm();
  }

  // None until the next Set.
  void Clear() { deadline_ = Clock::time_point::max(); }

  // For good.
  void Stop() {
    Clear();
    timer_.cancel();
  }

 private:
  void Arm() {
    armed_ = true;
    timer_.expires_at(deadline_);
    timer_.async_wait(
        [this, held = hold_()](const boost::system::error_code& cancelled) {
          if (cancelled) return;  // another wait took its place, or none
          armed_ = false;
          if (deadline_ == Clock::time_point::max()) return;
          if (Clock::now() < deadline_) return Arm();
          deadline_ = Clock::time_point::max();
          met_();
        });
  }

  boost::asio::steady_timer timer_;
  Clock::time_point deadline_ = Clock::time_point::max();
  bool armed_ = false;
  std::function<std::shared_ptr<void>()> hold_;
  std::function<void()> met_;
};

}  // namespace lockstep::http
