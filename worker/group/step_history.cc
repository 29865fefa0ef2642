#include "worker/group/step_history.h"

#include <absl/strings/str_cat.h>

namespace lockstep {

StepHistory::StepHistory(int capacity) : capacity_(capacity) {
  ring_.reserve(capacity_);
}

void StepHistory::Record(const Entry& entry) {
  absl::MutexLock lock(&mutex_);
  if (ring_.size() < capacity_) {
    ring_.push_back(entry);
  } else {
    ring_[next_] = entry;
  }
  next_ = (next_ + 1) % capacity_;
}

std::vector<StepHistory::Entry> StepHistory::Entries() const {
  absl::MutexLock lock(&mutex_);
  if (ring_.size() < capacity_) return ring_;
  std::vector<Entry> result(ring_.begin() + next_, ring_.end());
  result.insert(result.end(), ring_.begin(), ring_.begin() + next_);
  return result;
}

std::string StepHistory::ToString() const {
  std::string result;
  for (const Entry& entry : Entries()) {
    absl::StrAppend(&result, "step ", entry.step, " messages ", entry.messages,
                    " tokens ", entry.tokens, " digest ", ToHex(entry.digest),
                    "\n");
  }
  return result;
}

}  // namespace lockstep
