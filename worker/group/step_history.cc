#include "worker/group/step_history.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <glog/logging.h>

#include <algorithm>
#include <bit>

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

StepHistory::StepHistory(int capacity)
    : capacity_(capacity), ring_(std::make_unique<Slot[]>(capacity)) {}

// Release stores throughout: a reader that sees a word of an entry sees that
// its writing had begun.
void StepHistory::Record(const Entry& entry) {
  const uint64_t count = count_.load(std::memory_order_relaxed);
  begun_.store(count + 1, std::memory_order_relaxed);
  const Words words = std::bit_cast<Words>(entry);
  Slot& slot = ring_[count % capacity_];
  for (size_t i = 0; i < words.size(); ++i) {
    slot[i].store(words[i], std::memory_order_release);
  }
  count_.store(count + 1, std::memory_order_release);
}

std::vector<StepHistory::Entry> StepHistory::Entries() const {
  const uint64_t count = count_.load(std::memory_order_acquire);
  const uint64_t first = count > capacity_ ? count - capacity_ : 0;
  std::vector<Entry> result;
  for (uint64_t index = first; index < count; ++index) {
    const Slot& slot = ring_[index % capacity_];
    Words words;
    for (size_t i = 0; i < words.size(); ++i) {
      words[i] = slot[i].load(std::memory_order_acquire);
    }
    const uint64_t begun = begun_.load(std::memory_order_relaxed);
    if (begun > index + capacity_) continue;  // being overwritten
    result.push_back(std::bit_cast<Entry>(words));
  }
  return result;
}

std::string StepHistory::ToString() const {
  return absl::StrJoin(Entries(), "", AppendLine);
}

void StepHistory::WriteToLog() {
  if (is_written_.exchange(true)) return;
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
