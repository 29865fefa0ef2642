#include "tests/testing/memory/allocation_counter.h"

#include <atomic>

#include "tests/testing/memory/replaced_new.h"

namespace lockstep::testing {
namespace {

std::atomic<int64_t> allocations = 0;

}  // namespace

size_t OnNew(size_t bytes) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  return bytes;
}

int64_t NumAllocations() { return allocations.load(std::memory_order_relaxed); }

}  // namespace lockstep::testing
