#include "worker/scheduler/conservation.h"

#include <absl/strings/str_cat.h>

#include <vector>

#include "common/status_macros.h"

namespace lockstep {
namespace {

enum class Owner { kNone, kFree, kCache, kSequence };

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

  Owner owner(int32_t page) const { return owners_[page]; }

  absl::Status CheckComplete() const {
    for (size_t page = 0; page < owners_.size(); ++page) {
      if (owners_[page] != Owner::kNone) continue;
      return absl::InternalError(absl::StrCat("KV page ", page, " is lost."));
    }
    return absl::OkStatus();
  }

 private:
  std::vector<Owner> owners_;
};

absl::Status ClaimPages(const ScheduledSequence& scheduled,
                        PageOwners* owners) {
  const auto pages = scheduled.sequence.pages();
  const int num_shared = scheduled.prefix.num_pages();
  for (const int32_t page : pages.first(num_shared)) {
    if (owners->owner(page) == Owner::kCache) continue;
    return absl::InternalError(absl::StrCat("KV page ", page, " of request ",
                                            scheduled.id().request,
                                            " is shared but not cached."));
  }
  for (const int32_t page : pages.subspan(num_shared)) {
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
    LOCKSTEP_RETURN_IF_ERROR(ClaimPages(*scheduled, &owners));
  }
  LOCKSTEP_RETURN_IF_ERROR(owners.CheckComplete());
  if (state.table.running().empty() &&
      cache.num_evictable() != cache.num_cached()) {
    return absl::InternalError(
        absl::StrCat(cache.num_cached() - cache.num_evictable(),
                     " cached KV pages are locked although no sequence runs."));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
