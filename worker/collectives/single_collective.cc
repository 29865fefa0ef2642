#include "worker/collectives/single_collective.h"

#include <absl/status/status.h>

#include <algorithm>

#include "common/status_macros.h"

namespace lockstep {

absl::Status SingleCollective::CheckAlive() {
  if (!aborted_.load(std::memory_order_acquire)) return absl::OkStatus();
  absl::MutexLock lock(&mutex_);
  return error_;
}

absl::Status SingleCollective::AllReduceSum(absl::Span<float>) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAlive());
  ++num_all_reduces_;
  return absl::OkStatus();
}

absl::Status SingleCollective::AllGather(absl::Span<const float> in,
                                         absl::Span<float> out) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAlive());
  ++num_all_gathers_;
  if (in.data() != out.data()) std::copy(in.begin(), in.end(), out.begin());
  return absl::OkStatus();
}

void SingleCollective::End(const absl::Status& error) {
  absl::MutexLock lock(&mutex_);
  if (aborted_) return;
  error_ = error;
  aborted_.store(true, std::memory_order_release);
}

}  // namespace lockstep
