#include "worker/service/request_counts.h"

#include <algorithm>

#include "common/metrics/reason_label.h"

namespace lockstep {
namespace {

// A request whose choices all came to an end by themselves did so, even if an
// abort was on its way.
v1::AbortCause CauseOf(const OutputStream::End& end) {
  const bool is_complete =
      end.status.ok() &&
      std::none_of(end.reasons.begin(), end.reasons.end(),
                   [](auto reason) { return reason == v1::ABORTED; });
  return is_complete ? v1::ABORT_CAUSE_UNSPECIFIED : end.cause;
}

void CountRequest(const OutputStream::End& end, v1::RequestCounts& counts) {
  switch (CauseOf(end)) {
    case v1::CLIENT_CANCELLED:
      return counts.set_client_cancelled(counts.client_cancelled() + 1);
    case v1::DEADLINE:
      return counts.set_deadline(counts.deadline() + 1);
    case v1::ABORT_CALL:
      return counts.set_abort_call(counts.abort_call() + 1);
    case v1::SLOW_READER:
      return counts.set_slow_reader(counts.slow_reader() + 1);
    case v1::SHUTDOWN:
      return counts.set_shutdown(counts.shutdown() + 1);
    default:
      if (end.status.ok()) return counts.set_completed(counts.completed() + 1);
      return counts.set_failed(counts.failed() + 1);
  }
}

void CountChoice(v1::FinishReason reason, v1::RequestCounts& counts) {
  switch (reason) {
    case v1::STOP:
      return counts.set_choices_stop(counts.choices_stop() + 1);
    case v1::LENGTH:
      return counts.set_choices_length(counts.choices_length() + 1);
    default:
      return counts.set_choices_ended_early(counts.choices_ended_early() + 1);
  }
}

}  // namespace

void RequestCounts::Refused(const absl::Status& why) {
  const std::string reason(ReasonLabel(why));
  absl::MutexLock lock(&mutex_);
  ++refusals_[reason];
  counts_.set_refused(counts_.refused() + 1);
}

void RequestCounts::Accepted() {
  absl::MutexLock lock(&mutex_);
  counts_.set_accepted(counts_.accepted() + 1);
}

void RequestCounts::Ended(const OutputStream& stream) {
  const OutputStream::End end = stream.end();
  absl::MutexLock lock(&mutex_);
  CountRequest(end, counts_);
  for (const v1::FinishReason reason : end.reasons) {
    CountChoice(reason, counts_);
  }
}

v1::RequestCounts RequestCounts::counts() const {
  absl::MutexLock lock(&mutex_);
  return counts_;
}

std::map<std::string, uint64_t> RequestCounts::refusals() const {
  absl::MutexLock lock(&mutex_);
  return refusals_;
}

}  // namespace lockstep
