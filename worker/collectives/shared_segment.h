#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "worker/collectives/shared_barrier.h"

namespace lockstep {

// The memory that the ranks of one host share: a barrier, and two chunk buffers
// a rank. It has no name. Rank 0 creates it and holds a file descriptor of it,
// by which the others find it in /proc; so nothing is left of it once the
// processes are gone, however they end.
class SharedSegment {
 public:
  static constexpr int kMaxRanks = SharedBarrier::kMaxRanks;
  static constexpr int kChunkFloats = 64 * 1024;

  // What a rank shows the others with one chunk.
  struct Slot {
    uint64_t operation;  // what this rank thinks it takes part in
    alignas(64) float chunk[kChunkFloats];
  };

  // /proc/PROCESS_ID/fd/FILE_DESCRIPTOR, while the creator lives.
  struct Address {
    int process_id = 0;
    int file_descriptor = -1;
  };

  // RESOURCE_EXHAUSTED without memory, which is taken at once.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Create(int size);

  // UNAVAILABLE when it can not be opened, which says what that takes;
  // INVALID_ARGUMENT when it is no segment of `size` ranks.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Attach(
      const Address& address, int size);

  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  // REQUIRES: created, not attached.
  Address address() const;

  SharedBarrier& barrier();

  // REQUIRES: parity is 0 or 1.
  Slot& slot(int rank, int parity);

 private:
  struct Header;

  SharedSegment(int fd, void* memory, int size);
  static size_t Bytes(int size);
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Map(int fd, int size);
  Header& header();

  const int fd_;
  void* const memory_;
  const int size_;
};

}  // namespace lockstep
