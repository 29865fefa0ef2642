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
      return was_accepted ? FailureKind::kFinal : FailureKind::kRefused;
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
  if (kind == FailureKind::kFinal) return false;
  failing_since_ = std::min(failing_since_, now);
  if (!has_token_) return ++retries_ <= options_.max_retries;
  return kind == FailureKind::kRefused || ++losses_ <= options_.max_losses;
}

bool RetryPlan::Waits(bool is_there, absl::Time now) const {
  const absl::Duration most =
      is_there ? options_.refusal_wait : options_.group_wait;
  return has_token_ && now - failing_since_ < most;
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
