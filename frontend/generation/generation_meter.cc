#include "frontend/generation/generation_meter.h"

#include <utility>

#include "common/metrics/reason_label.h"

namespace lockstep {

void GenerationMeter::OnEnd(const absl::Status& status, Duration lasted,
                            bool has_tokens, uint64_t prompt_tokens,
                            uint64_t cached_tokens) {
  --open_;
  total_.Observe(lasted);
  prompted_ += prompt_tokens;
  cached_ += cached_tokens;
  std::string code = absl::StatusCodeToString(status.code());
  const bool is_refused = !status.ok() && !has_tokens;
  std::string reason(is_refused ? ReasonLabel(status) : "");
  absl::MutexLock lock(&mutex_);
  ++ends_[std::move(code)];
  if (is_refused) ++refusals_[std::move(reason)];
}

std::map<std::string, uint64_t> GenerationMeter::ends() const {
  absl::MutexLock lock(&mutex_);
  return ends_;
}

std::map<std::string, uint64_t> GenerationMeter::refusals() const {
  absl::MutexLock lock(&mutex_);
  return refusals_;
}

}  // namespace lockstep
