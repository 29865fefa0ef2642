#include "worker/scheduler/sequence_pages.h"

#include <absl/types/span.h>
#include <glog/logging.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace lockstep {

SequencePages::SequencePages(int num_pages, int page_size)
    : page_size_(page_size), cache_(num_pages, page_size) {}

bool SequencePages::Acquire(ScheduledSequence& scheduled, int reserve_pages) {
  Sequence& sequence = scheduled.sequence;
  std::vector<int32_t>& pages = sequence.mutable_pages();
  CHECK(pages.empty() && sequence.num_computed() == 0);
  if (scheduled.acquirable_from.has_value() &&
      cache_.num_gains() < *scheduled.acquirable_from + reserve_pages) {
    return false;
  }
  PrefixHold prefix;
  if (!sequence.request().bypass_prefix_cache()) {
    prefix = cache_.Match(
        sequence.tokens().first(scheduled.max_cached_tokens()), &pages);
  }
  const int missing = PagesFor(sequence.num_tokens()) - prefix.num_pages();
  const int shortage = missing - cache_.num_available();
  if (shortage + reserve_pages > 0) {
    cache_.Unmatch(prefix);
    pages.clear();
    scheduled.acquirable_from = cache_.num_gains() + shortage;
    return false;
  }
  CHECK(cache_.Allocate(missing, &pages));
  scheduled.acquirable_from.reset();
  scheduled.prefix = prefix;
  scheduled.digested_pages = 0;
  sequence.set_num_computed(prefix.num_pages() * page_size_);
  return true;
}

bool SequencePages::Grow(ScheduledSequence& scheduled) {
  Sequence& sequence = scheduled.sequence;
  if (scheduled.expected_computed() < sequence.pages().size() * page_size_) {
    return true;
  }
  return cache_.Allocate(1, &sequence.mutable_pages());
}

void SequencePages::Publish(ScheduledSequence& scheduled) {
  Sequence& sequence = scheduled.sequence;
  if (sequence.request().bypass_prefix_cache()) return;
  const int full_pages = sequence.num_computed() / page_size_;
  cache_.Insert(sequence.tokens().first(full_pages * page_size_),
                absl::MakeSpan(sequence.mutable_pages()).first(full_pages),
                &scheduled.prefix, &duplicates_);
  if (IsInFlight(scheduled) && !duplicates_.empty()) {
    kept_.push_back({scheduled.last_step, scheduled.id().request, PrefixHold(),
                     duplicates_});
  } else {
    cache_.Free(duplicates_);
  }
  duplicates_.clear();
  scheduled.digested_pages = 0;
}

void SequencePages::Release(ScheduledSequence& scheduled) {
  Publish(scheduled);
  Discard(scheduled);
}

void SequencePages::Discard(ScheduledSequence& scheduled) {
  Sequence& sequence = scheduled.sequence;
  if (IsInFlight(scheduled)) {
    kept_.push_back({scheduled.last_step, scheduled.id().request,
                     scheduled.prefix, std::move(sequence.mutable_pages())});
  } else {
    GiveBack(scheduled.prefix, sequence.pages());
  }
  scheduled.prefix = PrefixHold();
  sequence.mutable_pages().clear();
  sequence.set_num_computed(0);
}

void SequencePages::OnStepEnd(uint64_t step) {
  ended_step_ = step;
  auto end = kept_.begin();
  for (; end != kept_.end() && end->step <= step; ++end) {
    GiveBack(end->prefix, end->pages);
  }
  kept_.erase(kept_.begin(), end);
}

bool SequencePages::IsInFlight(const ScheduledSequence& scheduled) const {
  return scheduled.last_step > ended_step_;
}

void SequencePages::GiveBack(const PrefixHold& prefix,
                             absl::Span<const int32_t> pages) {
  cache_.Free(pages.subspan(prefix.num_pages()));
  cache_.Release(prefix);
}

}  // namespace lockstep
