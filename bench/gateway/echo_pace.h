#pragma once

#include <functional>
#include <utility>

#include "bench/gateway/pacer.h"
#include "bench/gateway/sent_times.h"

namespace lockstep::bench {

// How an engine that echoes sends its tokens.
struct EchoPace {
  // Of a stream, from one token to the next; zero: as fast as they are taken.
  SteadyClock::duration interval = SteadyClock::duration::zero();
  // All streams have their tokens at the same times, as from an engine's
  // steps.
  bool in_steps = false;
};

// When the tokens of one answer are due, from its beginning on.
//
//   EchoClock clock(pace, &pacer);
//   clock.AtNext([this] { WriteToken(); });
class EchoClock {
 public:
  EchoClock(const EchoPace& pace, Pacer* pacer)
      : interval_(pace.interval), pacer_(pacer), due_(SteadyClock::now()) {
    if (pace.in_steps && interval_.count() > 0) {
      due_ -= due_.time_since_epoch() % interval_;
    }
  }

  // Calls it when the next token is due: at once, where they are not paced.
  void AtNext(std::function<void()> write) {
    if (interval_.count() == 0) return write();
    due_ += interval_;
    pacer_->At(due_, std::move(write));
  }

 private:
  const SteadyClock::duration interval_;
  Pacer* const pacer_;
  SteadyClock::time_point due_;  // of the last token
};

}  // namespace lockstep::bench
