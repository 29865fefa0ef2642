#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace lockstep {

// Pages that one group has probably cached: those of the prompts it was sent,
// least recently used out first. Its memory is bounded by its capacity, about
// 64 bytes a page.
//
//   PrefixIndex index(/*capacity=*/4096);
//   index.Insert(HashPages(prompt));
//   index.NumMatching(HashPages(other));  // pages it begins with
//
// Not thread-safe.
class PrefixIndex {
 public:
  explicit PrefixIndex(size_t capacity) : capacity_(capacity) {}

  // `chain` as HashPages makes it.
  size_t NumMatching(absl::Span<const uint64_t> chain) const;
  void Insert(absl::Span<const uint64_t> chain);

  size_t size() const { return slots_.size(); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Page {
    uint64_t hash;
    uint32_t newer;
    uint32_t older;
  };

  void MakeNewest(uint64_t hash);
  uint32_t TakeSlot();
  void Unlink(uint32_t slot);
  void LinkNewest(uint32_t slot);

  const size_t capacity_;
  std::vector<Page> pages_;
  std::unordered_map<uint64_t, uint32_t> slots_;  // in pages_, by hash
  uint32_t newest_ = kNone;
  uint32_t oldest_ = kNone;
};

}  // namespace lockstep
