#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

// Which KV pages are free. Only ids: what a page holds is the engine's.
// Single-threaded.
//
//   PagePool pool(/*num_pages=*/8);
//   const int32_t page = pool.Allocate();  // 0
//   pool.Free(page);
//
// The lowest free id goes first, so the order depends on nothing but the calls
// and a page that is freed too early is soon given to somebody else, where
// tests see it.
class PagePool {
 public:
  explicit PagePool(int num_pages);

  int num_pages() const { return static_cast<int>(is_free_.size()); }
  int num_free() const { return static_cast<int>(free_.size()); }
  bool is_free(int32_t page) const { return is_free_[page]; }

  // REQUIRES: num_free() > 0.
  int32_t Allocate();

  // REQUIRES: `page` is allocated.
  void Free(int32_t page);

 private:
  std::vector<int32_t> free_;  // a heap, the lowest id on top
  std::vector<bool> is_free_;  // [num_pages]
};

}  // namespace lockstep
