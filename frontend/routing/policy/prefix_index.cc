#include "frontend/routing/policy/prefix_index.h"

#include <algorithm>

namespace lockstep {

// A page is never newer than those before it in a chain (see Insert), so what
// is known of a chain is always a beginning of it.
size_t PrefixIndex::NumMatching(absl::Span<const uint64_t> chain) const {
  return std::partition_point(
             chain.begin(), chain.end(),
             [this](uint64_t hash) { return slots_.contains(hash); }) -
         chain.begin();
}

void PrefixIndex::Insert(absl::Span<const uint64_t> chain) {
  const auto kept = chain.first(std::min(chain.size(), capacity_));
  for (auto hash = kept.rbegin(); hash != kept.rend(); ++hash) {
    MakeNewest(*hash);
  }
}

void PrefixIndex::MakeNewest(uint64_t hash) {
  if (const auto known = slots_.find(hash); known != slots_.end()) {
    Unlink(known->second);
    LinkNewest(known->second);
    return;
  }
  const uint32_t slot = TakeSlot();
  pages_[slot].hash = hash;
  slots_[hash] = slot;
  LinkNewest(slot);
}

// A new one, or the oldest.
uint32_t PrefixIndex::TakeSlot() {
  if (pages_.size() < capacity_) {
    pages_.emplace_back();
    return static_cast<uint32_t>(pages_.size() - 1);
  }
  const uint32_t slot = oldest_;
  slots_.erase(pages_[slot].hash);
  Unlink(slot);
  return slot;
}

void PrefixIndex::Unlink(uint32_t slot) {
  const Page& page = pages_[slot];
  (page.newer == kNone ? newest_ : pages_[page.newer].older) = page.older;
  (page.older == kNone ? oldest_ : pages_[page.older].newer) = page.newer;
}

void PrefixIndex::LinkNewest(uint32_t slot) {
  pages_[slot].newer = kNone;
  pages_[slot].older = newest_;
  (newest_ == kNone ? oldest_ : pages_[newest_].newer) = slot;
  newest_ = slot;
}

}  // namespace lockstep
