#include "frontend/routing/resilience/retry_plan.h"

#include <algorithm>

#include "frontend/routing/policy/page_chain.h"

namespace lockstep {

FailureKind KindOf(const absl::Status& status, bool was_accepted) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
      return was_accepted ? FailureKind::kLost : FailureKind::kRefused;
    case absl::StatusCode::kResourceExhausted:
      // Of an answer that has begun it is its reader who is at fault.
      return was_accepted ? FailureKind::kFinal : FailureKind::kFull;
    default:
      return FailureKind::kFinal;
  }
}

void RetryPlan::OnToken() {
  has_token_ = true;
  losses_ = 0;
  delays_ = 0;
  failing_since_ = absl::InfiniteFuture();
}

bool RetryPlan::OnFailure(FailureKind kind, absl::Time now) {
  last_failure_ = kind;
  if (kind == FailureKind::kFinal) return false;
  const bool was_taken =
      kind == FailureKind::kLost || kind == FailureKind::kSilent;
  // As long as it was in a group's queue it had one.
  failing_since_ =
      was_taken && !has_token_ ? now : std::min(failing_since_, now);
  if (has_token_) return !was_taken || ++losses_ <= options_.max_losses;
  const bool may_come = kind == FailureKind::kRefused &&
                        now - failing_since_ < options_.group_wait;
  return may_come || ++retries_ <= options_.max_retries;
}

absl::Time RetryPlan::WaitsUntil(bool is_there, absl::Time now) {
  failing_since_ = std::min(failing_since_, now);
  if (is_there && has_token_) return failing_since_ + options_.refusal_wait;
  // The news that a group has gone may come later than its last word.
  const bool is_leaving = last_failure_ == FailureKind::kRefused ||
                          last_failure_ == FailureKind::kLost;
  if (is_there && !is_leaving) return absl::InfinitePast();
  return failing_since_ + options_.group_wait;
}

absl::Duration RetryPlan::NextDelay() {
  constexpr int kMostDoublings = 20;
  const absl::Duration bound =
      std::min(options_.first_delay * (1 << std::min(delays_, kMostDoublings)),
               options_.longest_delay);
  const uint64_t draw = MixHashes(seed_, delays_++);
  return bound * (static_cast<double>(draw >> 11) * 0x1p-53);
}

}  // namespace lockstep
