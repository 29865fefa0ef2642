#include "worker/cache/page_pool.h"

#include <glog/logging.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace lockstep {

PagePool::PagePool(int num_pages)
    : free_(num_pages), is_free_(num_pages, true) {
  std::iota(free_.begin(), free_.end(), 0);
}

int32_t PagePool::Allocate() {
  CHECK(!free_.empty());
  std::pop_heap(free_.begin(), free_.end(), std::greater<>());
  const int32_t page = free_.back();
  free_.pop_back();
  is_free_[page] = false;
  return page;
}

void PagePool::Free(int32_t page) {
  CHECK(page >= 0 && page < num_pages()) << "page " << page;
  CHECK(!is_free_[page]) << "page " << page << " is freed twice";
  is_free_[page] = true;
  free_.push_back(page);
  std::push_heap(free_.begin(), free_.end(), std::greater<>());
}

}  // namespace lockstep
