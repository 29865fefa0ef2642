#include "worker/cache/prefix_cache.h"

#include <glog/logging.h>

#include <algorithm>

namespace lockstep {

PrefixCache::PrefixCache(int num_pages, int page_size)
    : pool_(num_pages), tree_(page_size) {}

PrefixHold PrefixCache::Match(absl::Span<const uint32_t> tokens,
                              std::vector<int32_t>* pages) {
  const RadixTree::Position position = tree_.Match(tokens, step_, pages);
  tree_.Lock(position.node);
  PrefixHold hold;
  hold.node_ = position.node;
  hold.num_pages_ = position.num_pages;
  return hold;
}

bool PrefixCache::Allocate(int count, std::vector<int32_t>* pages) {
  if (count > num_available()) return false;
  if (count > pool_.num_free()) {
    scratch_.clear();
    tree_.Evict(count - pool_.num_free(), &scratch_);
    for (const int32_t page : scratch_) pool_.Free(page);  // available before
  }
  for (int i = 0; i < count; ++i) pages->push_back(pool_.Allocate());
  return true;
}

void PrefixCache::Insert(absl::Span<const uint32_t> tokens,
                         absl::Span<int32_t> pages, PrefixHold* hold,
                         std::vector<int32_t>* duplicates) {
  CHECK_GE(pages.size(), hold->num_pages_);
  const int num_cached = tree_.num_pages();
  const RadixTree::Position position =
      tree_.Insert(tokens, pages, step_, duplicates);
  num_gains_ += tree_.num_pages() - num_cached;
  tree_.Lock(position.node);
  Release(*hold);
  hold->node_ = position.node;
  hold->num_pages_ = position.num_pages;
}

void PrefixCache::Unmatch(const PrefixHold& hold) {
  if (hold.node_ != nullptr) tree_.Unlock(hold.node_);
}

void PrefixCache::Release(const PrefixHold& hold) {
  const int num_evictable = tree_.num_evictable();
  Unmatch(hold);
  num_gains_ += tree_.num_evictable() - num_evictable;
}

void PrefixCache::Free(absl::Span<const int32_t> pages) {
  for (const int32_t page : pages) pool_.Free(page);
  num_gains_ += pages.size();
}

}  // namespace lockstep
