#pragma once

#include <absl/status/statusor.h>

#include <atomic>
#include <memory>
#include <vector>

#include "worker/collectives/collective.h"
#include "worker/collectives/shared_segment.h"

namespace lockstep {

// Ranks of one host, as processes or threads, over memory they share.
//
//   auto first = SharedMemoryCollective::Create(size);  // rank 0
//   …(*first)->address() goes to the other ranks…
//   auto other = SharedMemoryCollective::Attach(address, rank, size);
//
// Tensors are cut in chunks. For each, a rank copies its part into a buffer of
// its own, all meet at one barrier, and each reads what it needs from all; the
// two buffers of a rank take turns, so that one barrier a chunk is enough. A
// call that differs from another rank's in kind or size aborts the group.
class SharedMemoryCollective final : public Collective {
 public:
  using Address = SharedSegment::Address;

  // As rank 0. Errors: see SharedSegment.
  static absl::StatusOr<std::unique_ptr<SharedMemoryCollective>> Create(
      int size);
  // As another rank, while rank 0 lives. Once each.
  static absl::StatusOr<std::unique_ptr<SharedMemoryCollective>> Attach(
      const Address& address, int rank, int size);

  // REQUIRES: rank 0.
  Address address() const { return segment_->address(); }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::Status AllReduceSum(absl::Span<float> data) override;
  absl::Status AllGather(absl::Span<const float> in,
                         absl::Span<float> out) override;
  void SetTimeout(absl::Duration timeout) override { timeout_ = timeout; }
  void End(const absl::Status& error) override;
  int64_t num_all_reduces() const override { return num_all_reduces_; }
  int64_t num_all_gathers() const override { return num_all_gathers_; }

 private:
  friend absl::StatusOr<std::vector<std::unique_ptr<SharedMemoryCollective>>>
  MakeLocalGroup(int size);

  SharedMemoryCollective(std::shared_ptr<SharedSegment> segment, int rank,
                         int size);

  // Shows `in` to all ranks; afterwards theirs are at chunks_[parity_], until
  // the second Exchange from now.
  absl::Status Exchange(uint64_t operation, absl::Span<const float> in);

  // Shared with the other ranks of this process, if there are any.
  const std::shared_ptr<SharedSegment> segment_;
  const int rank_;
  const int size_;
  const int spins_;
  absl::Duration timeout_ = absl::InfiniteDuration();
  int parity_ = 0;                       // of the last exchange
  std::vector<const float*> chunks_[2];  // of all ranks, by parity
  std::atomic<int64_t> num_all_reduces_ = 0;
  std::atomic<int64_t> num_all_gathers_ = 0;
};

// The collectives of `size` ranks that are threads of this process, or children
// that it forks from now on. RESOURCE_EXHAUSTED without memory.
absl::StatusOr<std::vector<std::unique_ptr<SharedMemoryCollective>>>
MakeLocalGroup(int size);

}  // namespace lockstep
