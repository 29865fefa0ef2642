#include "worker/scheduler/conservation.h"

#include <absl/strings/str_cat.h>
#include <absl/types/span.h>

#include <vector>

#include "common/status_macros.h"

namespace lockstep {
namespace {

// kCacheAndSequence: cached, and held by a sequence.
enum class Owner { kNone, kFree, kCache, kCacheAndSequence, kSequence };

// Of a running sequence, or of one that had them when a step in flight began.
struct PageTable {
  uint64_t request;
  absl::Span<const int32_t> pages;
  int num_shared = 0;  // the first ones
};

class PageOwners {
 public:
  explicit PageOwners(int num_pages) : owners_(num_pages, Owner::kNone) {}

  absl::Status Claim(int32_t page, Owner owner) {
    if (owners_[page] != Owner::kNone) {
      return absl::InternalError(
          absl::StrCat("KV page ", page, " is in two places."));
    }
    owners_[page] = owner;
    return absl::OkStatus();
  }

  // False if `page` is not cached.
  bool Hold(int32_t page) {
    if (owners_[page] == Owner::kCacheAndSequence) return true;
    if (owners_[page] != Owner::kCache) return false;
    owners_[page] = Owner::kCacheAndSequence;
    ++num_held_;
    return true;
  }

  int num_held() const { return num_held_; }

  absl::Status CheckComplete() const {
    for (size_t page = 0; page < owners_.size(); ++page) {
      if (owners_[page] != Owner::kNone) continue;
      return absl::InternalError(absl::StrCat("KV page ", page, " is lost."));
    }
    return absl::OkStatus();
  }

 private:
  std::vector<Owner> owners_;
  int num_held_ = 0;  // of the cached ones
};

absl::Status ClaimPages(const PageTable& table, PageOwners* owners) {
  for (const int32_t page : table.pages.first(table.num_shared)) {
    if (owners->Hold(page)) continue;
    return absl::InternalError(absl::StrCat("KV page ", page, " of request ",
                                            table.request,
                                            " is shared but not cached."));
  }
  for (const int32_t page : table.pages.subspan(table.num_shared)) {
    LOCKSTEP_RETURN_IF_ERROR(owners->Claim(page, Owner::kSequence));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckConservation(const SchedulerState& state) {
  const PrefixCache& cache = state.pages.cache();
  PageOwners owners(cache.num_pages());
  for (int32_t page = 0; page < cache.num_pages(); ++page) {
    if (!cache.is_free(page)) continue;
    LOCKSTEP_RETURN_IF_ERROR(owners.Claim(page, Owner::kFree));
  }
  for (const int32_t page : cache.CachedPages()) {
    LOCKSTEP_RETURN_IF_ERROR(owners.Claim(page, Owner::kCache));
  }
  for (const ScheduledSequence* scheduled : state.table.running()) {
    LOCKSTEP_RETURN_IF_ERROR(
        ClaimPages({scheduled->id().request, scheduled->sequence.pages(),
                    scheduled->prefix.num_pages()},
                   &owners));
  }
  for (const SequencePages::Kept& kept : state.pages.kept()) {
    LOCKSTEP_RETURN_IF_ERROR(ClaimPages(
        {kept.request, kept.pages, kept.prefix.num_pages()}, &owners));
  }
  LOCKSTEP_RETURN_IF_ERROR(owners.CheckComplete());
  const int num_locked = cache.num_cached() - cache.num_evictable();
  if (num_locked == owners.num_held()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(num_locked,
                                          " cached KV pages are locked, but ",
                                          owners.num_held(), " are held."));
}

}  // namespace lockstep
