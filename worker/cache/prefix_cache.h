#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "worker/cache/page_pool.h"
#include "worker/cache/radix_tree.h"

namespace lockstep {

// The KV pages of a rank: free, held by a sequence alone, or cached, that is in
// a radix tree where sequences that begin with the same tokens share them.
// Cached pages that no sequence holds are given up when free ones run out.
//
//   std::vector<int32_t> pages;
//   PrefixHold hold = cache.Match(tokens, &pages);     // shared, locked
//   if (!cache.Allocate(missing, &pages)) …            // private
//   cache.Insert(tokens, absl::MakeSpan(pages), &hold, &duplicates);  // shared
//   cache.Release(hold);                               // cached, for others
//
// Single-threaded. The clock of "least recently used" is the step given to
// set_step.
class PrefixCache {
 public:
  // What a sequence holds of the tree: the first `num_pages` of its page table.
  class PrefixHold {
   public:
    int num_pages() const { return num_pages_; }

   private:
    friend class PrefixCache;
    RadixTree::Node* node_ = nullptr;
    int num_pages_ = 0;
  };

  PrefixCache(int num_pages, int page_size);

  void set_step(uint64_t step) { step_ = step; }

  // The longest cached prefix of `tokens`, in whole pages, locked; its pages
  // are appended to `pages`.
  PrefixHold Match(absl::Span<const uint32_t> tokens,
                   std::vector<int32_t>* pages);

  // Appends `count` pages to `pages`, evicting where free ones run out; false,
  // and nothing changed, if there are not so many.
  bool Allocate(int count, std::vector<int32_t>* pages);

  // Counts up with each page that becomes available and each that becomes
  // shared. Whoever is short of `n` pages, those matched and those available
  // taken together, is so until this has grown by `n`.
  int64_t num_gains() const { return num_gains_; }

  // Pages that Allocate could give.
  int num_available() const { return pool_.num_free() + tree_.num_evictable(); }

  // Shares `pages`, which hold all of `tokens` in whole pages and begin with
  // those of `hold`. Where the tree already has other pages for the same
  // tokens, `pages` is rewritten to those, and the duplicates, which are the
  // caller's to free, are appended to `duplicates`. `hold` grows to all of
  // `pages`.
  void Insert(absl::Span<const uint32_t> tokens, absl::Span<int32_t> pages,
              PrefixHold* hold, std::vector<int32_t>* duplicates);

  // Gives back what Match or Insert locked.
  void Release(const PrefixHold& hold);
  // Gives back what Match has just locked, which is no gain.
  void Unmatch(const PrefixHold& hold);

  // Gives back pages that belong to the caller alone.
  void Free(absl::Span<const int32_t> pages);

  int num_pages() const { return pool_.num_pages(); }
  int num_free() const { return pool_.num_free(); }
  int num_cached() const { return tree_.num_pages(); }
  // Of num_cached(), those no sequence holds.
  int num_evictable() const { return tree_.num_evictable(); }

  // For checks.
  bool is_free(int32_t page) const { return pool_.is_free(page); }
  std::vector<int32_t> CachedPages() const { return tree_.AllPages(); }

 private:
  PagePool pool_;
  RadixTree tree_;
  uint64_t step_ = 0;
  int64_t num_gains_ = 0;
  std::vector<int32_t> scratch_;
};

using PrefixHold = PrefixCache::PrefixHold;

}  // namespace lockstep
