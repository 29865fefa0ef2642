#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace lockstep::bench {

using SteadyClock = std::chrono::steady_clock;

// When a worker in this process sent each token of each stream, for a client in
// this process that wants to know how long it took. Any thread; a token is Set
// before it is sent, and so before it is asked for.
class SentTimes {
 public:
  SentTimes(size_t streams, size_t tokens)
      : streams_(streams),
        tokens_(tokens),
        times_(new std::atomic<SteadyClock::rep>[streams * tokens]) {}

  size_t streams() const { return streams_; }
  size_t tokens() const { return tokens_; }

  void Set(size_t stream, size_t token, SteadyClock::time_point time) {
    times_[stream * tokens_ + token].store(time.time_since_epoch().count(),
                                           std::memory_order_relaxed);
  }
  double SecondsSince(size_t stream, size_t token,
                      SteadyClock::time_point now) const {
    const SteadyClock::duration sent(
        times_[stream * tokens_ + token].load(std::memory_order_relaxed));
    return std::chrono::duration<double>(now.time_since_epoch() - sent).count();
  }

 private:
  const size_t streams_;
  const size_t tokens_;
  const std::unique_ptr<std::atomic<SteadyClock::rep>[]> times_;
};

}  // namespace lockstep::bench
