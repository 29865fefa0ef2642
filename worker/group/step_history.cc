#include "worker/group/step_history.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <glog/logging.h>

#include <algorithm>

namespace lockstep {
namespace {

// glog cuts a longer entry off.
constexpr size_t kLinesOfALogEntry = 64;

void AppendLine(std::string* out, const StepHistory::Entry& entry) {
  absl::StrAppend(out, "step ", entry.step, " messages ", entry.messages,
                  " tokens ", entry.tokens, " digest ", ToHex(entry.digest),
                  "\n");
}

}  // namespace

StepHistory::StepHistory(int capacity) : capacity_(capacity) {
  ring_.reserve(capacity_);
}

void StepHistory::Record(const Entry& entry) {
  if (ring_.size() < capacity_) {
    ring_.push_back(entry);
  } else {
    ring_[next_] = entry;
  }
  next_ = (next_ + 1) % capacity_;
}

std::vector<StepHistory::Entry> StepHistory::Entries() const {
  if (ring_.size() < capacity_) return ring_;
  std::vector<Entry> result(ring_.begin() + next_, ring_.end());
  result.insert(result.end(), ring_.begin(), ring_.begin() + next_);
  return result;
}

std::string StepHistory::ToString() const {
  return absl::StrJoin(Entries(), "", AppendLine);
}

void StepHistory::WriteToLog() const {
  const std::vector<Entry> entries = Entries();
  LOG(ERROR) << "the last " << entries.size() << " steps of this rank:";
  for (size_t i = 0; i < entries.size(); i += kLinesOfALogEntry) {
    const size_t end = std::min(i + kLinesOfALogEntry, entries.size());
    LOG(ERROR) << "\n"
               << absl::StrJoin(entries.begin() + i, entries.begin() + end, "",
                                AppendLine);
  }
}

}  // namespace lockstep
