#pragma once

#include <absl/time/time.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <thread>

namespace lockstep {

// SIGTERM and SIGINT as calls, from its creation to its destruction; outside of
// that they end the process.
//
//   TerminationSignals signals({.grace = absl::Seconds(30),
//                               .begin = …, .hurry = …});
//
// `begin` is called at the first signal; `hurry` at the second one, or when
// `grace` has passed since the first. Both on the thread "signals", at most
// once each.
class TerminationSignals {
 public:
  struct Options {
    absl::Duration grace;
    std::function<void()> begin;
    std::function<void()> hurry;
  };

  explicit TerminationSignals(Options options);
  ~TerminationSignals();
  TerminationSignals(const TerminationSignals&) = delete;
  TerminationSignals& operator=(const TerminationSignals&) = delete;

 private:
  void AwaitFirst();
  void AwaitSecondOrGrace();

  const Options options_;
  boost::asio::io_context context_{1};
  boost::asio::signal_set signals_;
  boost::asio::steady_timer grace_;
  std::thread thread_;
};

// Both signals have no effect on this process from now on: a follower's, which
// leaves when its leader says so or is gone.
void IgnoreTerminationSignals();

}  // namespace lockstep
