#pragma once

#include <absl/time/time.h>

#include <algorithm>
#include <cstdint>

namespace lockstep {

// So much a minute: what is not spent adds up to a minute's worth. One may
// spend more than there is, as what a request takes is known only at its end;
// what follows then waits until that is paid off.
//
//   if (const auto wait = budget.Wait(now); wait > absl::ZeroDuration()) …
//   budget.Spend(1, now);
//
// One thread. Times do not go back.
class MinuteBudget {
 public:
  // 0: without end. What is left is cut to the new rate.
  void SetRate(int64_t per_minute) {
    if (per_minute_ == 0) left_ = static_cast<double>(per_minute);
    per_minute_ = per_minute;
    left_ = std::min(left_, static_cast<double>(per_minute_));
  }

  // Until one is there; zero: now.
  absl::Duration Wait(absl::Time now) {
    Refill(now);
    if (per_minute_ == 0 || left_ >= 1) return absl::ZeroDuration();
    return absl::Minutes(1) * ((1 - left_) / static_cast<double>(per_minute_));
  }

  void Spend(int64_t number, absl::Time now) {
    Refill(now);
    if (per_minute_ > 0) left_ -= static_cast<double>(number);
  }

 private:
  void Refill(absl::Time now) {
    const absl::Duration passed = now - refilled_;
    refilled_ = now;
    if (per_minute_ == 0) return;
    const auto rate = static_cast<double>(per_minute_);
    left_ = std::min(rate, left_ + absl::ToDoubleMinutes(passed) * rate);
  }

  int64_t per_minute_ = 0;
  double left_ = 0;
  absl::Time refilled_ = absl::UnixEpoch();
};

}  // namespace lockstep
