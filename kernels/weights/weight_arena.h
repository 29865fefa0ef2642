#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

namespace lockstep::kernels {

// Memory for packed weights. Every step reads all of them end to end: in pages
// of 4 KiB much of that is looking up where they lie, so it is taken in large
// pieces that the system may back by huge pages, and no matrix starts a page of
// its own.
//
//   WeightArena arena;
//   uint8_t* panels = arena.Allocate(bytes);
//
// One thread at a time. What was allocated stays where it is, also when the
// arena is moved, and goes with it.
class WeightArena {
 public:
  static constexpr size_t kPieceBytes = size_t{64} << 20;

  // Takes memory in pieces of at least so many bytes.
  explicit WeightArena(size_t piece_bytes = kPieceBytes)
      : piece_bytes_(piece_bytes) {}
  WeightArena(WeightArena&&) = default;
  WeightArena& operator=(WeightArena&&) = default;

  // 64-byte aligned, not initialized: memory is taken when it is first written.
  // Without address space the process ends.
  uint8_t* Allocate(size_t bytes);

 private:
  struct Free {
    void operator()(uint8_t* data) const { std::free(data); }
  };

  size_t piece_bytes_;
  std::vector<std::unique_ptr<uint8_t[], Free>> pieces_;
  uint8_t* next_ = nullptr;  // in the last piece
  size_t left_ = 0;          // bytes
};

}  // namespace lockstep::kernels
