#pragma once

#include <cstdint>
#include <vector>

#include "worker/cache/prefix_cache.h"
#include "worker/scheduler/scheduled_sequence.h"

namespace lockstep {

// Gives running sequences their pages and takes them back, through the prefix
// cache unless the request bypasses it. Single-threaded.
class SequencePages {
 public:
  SequencePages(int num_pages, int page_size);

  // The clock of the cache.
  void set_step(uint64_t step) { cache_.set_step(step); }

  // Gives a sequence without pages those for all its tokens, so that
  // `reserve_pages` more could still be given; what the cache has of them
  // counts as computed. False, and no page given, if they do not suffice; then
  // it does not look into the cache for this sequence again before there have
  // been enough gains, so that a long prompt may wait at no cost.
  bool Acquire(ScheduledSequence& scheduled, int reserve_pages);

  // Makes room for the position after the computed ones. False, and nothing
  // changed, if there is no page.
  bool Grow(ScheduledSequence& scheduled);

  // Offers the full pages that are computed to others.
  void Publish(ScheduledSequence& scheduled);

  // Publishes, then gives all pages back; nothing is computed any more.
  void Release(ScheduledSequence& scheduled);

  int PagesFor(int num_tokens) const {
    return (num_tokens + page_size_ - 1) / page_size_;
  }

  const PrefixCache& cache() const { return cache_; }

 private:
  const int page_size_;
  PrefixCache cache_;
  std::vector<int32_t> duplicates_;  // scratch
};

}  // namespace lockstep
