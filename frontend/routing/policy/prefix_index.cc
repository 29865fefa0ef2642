#include "frontend/routing/policy/prefix_index.h"

#include <algorithm>

namespace lockstep {

// A page is never newer than those before it in a chain (see Insert), so what
// is known of a chain is always a beginning of it.
size_t PrefixIndex::NumMatching(absl::Span<const uint64_t> chain) const {
  return std::partition_point(
             chain.begin(), chain.end(),
             [this](uint64_t hash) { return Find(hash) != kNone; }) -
         chain.begin();
}

void PrefixIndex::Insert(absl::Span<const uint64_t> chain) {
  const auto kept = chain.first(std::min(chain.size(), capacity_));
  for (auto hash = kept.rbegin(); hash != kept.rend(); ++hash) {
    MakeNewest(*hash);
  }
}

void PrefixIndex::MakeNewest(uint64_t hash) {
  uint32_t slot = Find(hash);
  if (slot == kNone) {
    slot = TakeSlot();
    pages_[slot].hash = hash;
    EnterBucket(slot);
  } else {
    Unlink(slot);
  }
  LinkNewest(slot);
}

uint32_t PrefixIndex::Find(uint64_t hash) const {
  uint32_t slot = buckets_[BucketOf(hash)];
  while (slot != kNone && pages_[slot].hash != hash) slot = pages_[slot].next;
  return slot;
}

void PrefixIndex::EnterBucket(uint32_t slot) {
  uint32_t& first = buckets_[BucketOf(pages_[slot].hash)];
  pages_[slot].next = first;
  first = slot;
}

void PrefixIndex::LeaveBucket(uint32_t slot) {
  uint32_t* link = &buckets_[BucketOf(pages_[slot].hash)];
  while (*link != slot) link = &pages_[*link].next;
  *link = pages_[slot].next;
}

// A new one, or the oldest.
uint32_t PrefixIndex::TakeSlot() {
  if (pages_.size() < capacity_) {
    pages_.emplace_back();
    return static_cast<uint32_t>(pages_.size() - 1);
  }
  const uint32_t slot = oldest_;
  LeaveBucket(slot);
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
