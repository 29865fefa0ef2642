#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "worker/collectives/shared_barrier.h"

namespace lockstep {

// The memory that the ranks of one host share: a barrier, and two chunk buffers
// a rank. Rank 0 creates it under a name in /dev/shm, with mode 0600; the
// others attach; the last one to attach removes the name, so that nothing is
// left whichever process dies afterwards. Until then every rank that is
// destroyed or calls RemoveName removes it.
class SharedSegment {
 public:
  static constexpr int kMaxRanks = 64;
  static constexpr int kChunkFloats = 64 * 1024;

  // What a rank shows the others with one chunk.
  struct Slot {
    uint64_t operation;  // what this rank thinks it takes part in
    alignas(64) float chunk[kChunkFloats];
  };

  // `name` begins with a slash and has no other. ALREADY_EXISTS when it is
  // taken, RESOURCE_EXHAUSTED when /dev/shm is too small.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Create(
      const std::string& name, int size);

  // Waits for the name to appear. DEADLINE_EXCEEDED when it does not,
  // INVALID_ARGUMENT when the segment is for another number of ranks,
  // ALREADY_EXISTS when `rank` has attached before.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Attach(
      const std::string& name, int rank, int size, absl::Duration timeout);

  // Without a name: for ranks that are threads, or children.
  static absl::StatusOr<std::unique_ptr<SharedSegment>> CreateAnonymous(
      int size);

  ~SharedSegment();
  SharedSegment(const SharedSegment&) = delete;
  SharedSegment& operator=(const SharedSegment&) = delete;

  SharedBarrier& barrier();

  // REQUIRES: parity is 0 or 1.
  Slot& slot(int rank, int parity);

  // No rank can attach any more.
  void RemoveName();

 private:
  struct Header;

  SharedSegment(std::string name, void* memory, int size);
  static size_t Bytes(int size);
  static absl::StatusOr<std::unique_ptr<SharedSegment>> Map(
      const std::string& name, int fd, int size);
  absl::Status Register(int rank);
  Header& header();

  const std::string name_;  // empty when anonymous
  void* const memory_;
  const int size_;
  bool registered_ = false;  // as a rank of a named segment
};

}  // namespace lockstep
