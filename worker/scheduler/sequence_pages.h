#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "worker/cache/prefix_cache.h"
#include "worker/scheduler/scheduled_sequence.h"

namespace lockstep {

// Gives running sequences their pages and takes them back, through the prefix
// cache unless the request bypasses it. What a sequence gives back is kept, if
// a step in flight has a span of it, until that step ends; nobody else gets it
// before. Single-threaded.
class SequencePages {
 public:
  // What a step in flight still touches: a page table, or a part of one.
  struct Kept {
    uint64_t step;
    uint64_t request;   // whose they were
    PrefixHold prefix;  // the first pages
    std::vector<int32_t> pages;
  };

  SequencePages(int num_pages, int page_size);

  // The clock of the cache.
  void set_step(uint64_t step) { cache_.set_step(step); }

  // Gives a sequence without pages those for all its tokens, so that
  // `reserve_pages` more could still be given; what the cache has of them
  // counts as computed. False, and no page given, if they do not suffice; then
  // it does not look into the cache for this sequence again before there have
  // been enough gains, so that a long prompt may wait at no cost.
  bool Acquire(ScheduledSequence& scheduled, int reserve_pages);

  // Makes room for the position after those computed and in flight. False, and
  // nothing changed, if there is no page.
  bool Grow(ScheduledSequence& scheduled);

  // Offers the full pages that are computed to others.
  void Publish(ScheduledSequence& scheduled);

  // Publishes, then gives all pages back; nothing is computed any more.
  void Release(ScheduledSequence& scheduled);

  // The same, but publishes nothing.
  void Discard(ScheduledSequence& scheduled);

  // No step up to `step` is in flight any more.
  void OnStepEnd(uint64_t step);

  // The end of a step will bring pages, or unlock some.
  bool keeps_some() const { return !kept_.empty(); }
  const std::vector<Kept>& kept() const { return kept_; }

  int PagesFor(int num_tokens) const {
    return (num_tokens + page_size_ - 1) / page_size_;
  }

  const PrefixCache& cache() const { return cache_; }

 private:
  bool IsInFlight(const ScheduledSequence& scheduled) const;
  void GiveBack(const PrefixHold& prefix, absl::Span<const int32_t> pages);

  const int page_size_;
  PrefixCache cache_;
  std::vector<int32_t> duplicates_;  // scratch
  uint64_t ended_step_ = 0;          // no step up to it is in flight
  std::vector<Kept> kept_;           // in the order of their steps
};

}  // namespace lockstep
