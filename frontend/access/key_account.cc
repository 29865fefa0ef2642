#include "frontend/access/key_account.h"

#include <absl/strings/str_cat.h>

#include <cstdint>

#include "common/error_reason.h"

namespace lockstep {
namespace {

// How long a request takes is not known; a second is not long.
constexpr absl::Duration kPlaceRetry = absl::Seconds(1);

absl::Status Exhausted(absl::string_view why, absl::Duration wait) {
  // Told in whole seconds, as HTTP has it, so that both say the same.
  const int64_t seconds = absl::ToInt64Seconds(
      absl::Ceil(wait - absl::Milliseconds(1), absl::Seconds(1)));
  return MakeError(ErrorReason::kKeyLimit,
                   absl::StrCat(why, "; try again in ", seconds, " s."),
                   {.retry_delay = absl::Seconds(seconds)});
}

}  // namespace

int32_t KeyAccount::priority_floor() const {
  absl::MutexLock lock(&mutex_);
  return limits_.priority_floor;
}

void KeyAccount::SetLimits(const KeyLimits& limits) {
  absl::MutexLock lock(&mutex_);
  limits_ = limits;
  requests_.SetRate(limits.requests_per_minute);
  tokens_.SetRate(limits.tokens_per_minute);
}

absl::Status KeyAccount::Enter() {
  const absl::Time now = clock_();
  absl::MutexLock lock(&mutex_);
  if (limits_.concurrent_requests > 0 &&
      running_ >= limits_.concurrent_requests) {
    return Exhausted(
        absl::StrCat("the API key of ", name_, " has ", running_,
                     " requests running, its limit of concurrent_requests"),
        kPlaceRetry);
  }
  if (const auto wait = requests_.Wait(now); wait > absl::ZeroDuration()) {
    return Exhausted(
        absl::StrCat("the API key of ", name_, " has used up its ",
                     limits_.requests_per_minute, " requests_per_minute"),
        wait);
  }
  if (const auto wait = tokens_.Wait(now); wait > absl::ZeroDuration()) {
    return Exhausted(
        absl::StrCat("the API key of ", name_, " has used up its ",
                     limits_.tokens_per_minute, " tokens_per_minute"),
        wait);
  }
  requests_.Spend(1, now);
  ++running_;
  return absl::OkStatus();
}

void KeyAccount::Leave() {
  absl::MutexLock lock(&mutex_);
  --running_;
}

void KeyAccount::SpendTokens(int64_t tokens) {
  const absl::Time now = clock_();
  absl::MutexLock lock(&mutex_);
  tokens_.Spend(tokens, now);
}

}  // namespace lockstep
