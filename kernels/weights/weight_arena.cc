#include "kernels/weights/weight_arena.h"

#include <glog/logging.h>
#include <sys/mman.h>

#include <algorithm>

namespace lockstep::kernels {
namespace {

constexpr size_t kCacheLine = 64;
constexpr size_t kHugePage = size_t{2} << 20;

size_t RoundUp(size_t bytes, size_t multiple) {
  return (bytes + multiple - 1) / multiple * multiple;
}

}  // namespace

uint8_t* WeightArena::Allocate(size_t bytes) {
  bytes = RoundUp(bytes, kCacheLine);
  if (bytes > left_) {
    left_ = std::max(piece_bytes_, bytes);
    const bool huge = left_ >= kHugePage;
    void* data = nullptr;
    CHECK_EQ(posix_memalign(&data, huge ? kHugePage : kCacheLine, left_), 0)
        << "no memory for " << left_ << " bytes of weights";
    // A refusal costs speed only.
    if (huge) madvise(data, left_ / kHugePage * kHugePage, MADV_HUGEPAGE);
    next_ = static_cast<uint8_t*>(data);
    pieces_.emplace_back(next_);
  }
  uint8_t* const out = next_;
  next_ += bytes;
  left_ -= bytes;
  return out;
}

}  // namespace lockstep::kernels
