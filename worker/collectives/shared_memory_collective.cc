#include "worker/collectives/shared_memory_collective.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "common/error_reason.h"
#include "common/status_macros.h"
#include "worker/collectives/blamed_rank.h"
#include "worker/collectives/operation.h"
#include "worker/collectives/rank_sum.h"

namespace lockstep {
namespace {

// About 20 us: the ranks of a step arrive close together.
constexpr int kSpins = 1000;

constexpr size_t kChunk = SharedSegment::kChunkFloats;

absl::Status CheckRank(int rank, int size) {
  if (size < 1 || size > SharedSegment::kMaxRanks) {
    return absl::InvalidArgumentError(absl::StrCat("a group of ", size,
                                                   " ranks; one host has 1 to ",
                                                   SharedSegment::kMaxRanks));
  }
  if (rank >= 0 && rank < size) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("rank ", rank, " of a group of ", size));
}

int SpinsFor(int size) {
  const int cores = static_cast<int>(std::thread::hardware_concurrency());
  return size <= cores ? kSpins : 0;
}

}  // namespace

SharedMemoryCollective::SharedMemoryCollective(
    std::shared_ptr<SharedSegment> segment, int rank, int size)
    : segment_(std::move(segment)),
      rank_(rank),
      size_(size),
      spins_(SpinsFor(size)) {
  for (int parity = 0; parity < 2; ++parity) {
    for (int other = 0; other < size_; ++other) {
      chunks_[parity].push_back(segment_->slot(other, parity).chunk);
    }
  }
}

absl::StatusOr<std::unique_ptr<SharedMemoryCollective>>
SharedMemoryCollective::Create(int size) {
  LOCKSTEP_RETURN_IF_ERROR(CheckRank(/*rank=*/0, size));
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<SharedSegment> segment,
                            SharedSegment::Create(size));
  return std::unique_ptr<SharedMemoryCollective>(
      new SharedMemoryCollective(std::move(segment), /*rank=*/0, size));
}

absl::StatusOr<std::unique_ptr<SharedMemoryCollective>>
SharedMemoryCollective::Attach(const Address& address, int rank, int size) {
  LOCKSTEP_RETURN_IF_ERROR(CheckRank(rank, size));
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<SharedSegment> segment,
                            SharedSegment::Attach(address, size));
  return std::unique_ptr<SharedMemoryCollective>(
      new SharedMemoryCollective(std::move(segment), rank, size));
}

absl::StatusOr<std::vector<std::unique_ptr<SharedMemoryCollective>>>
MakeLocalGroup(int size) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::shared_ptr<SharedSegment> segment,
                            SharedSegment::Create(size));
  std::vector<std::unique_ptr<SharedMemoryCollective>> group;
  for (int rank = 0; rank < size; ++rank) {
    group.push_back(std::unique_ptr<SharedMemoryCollective>(
        new SharedMemoryCollective(segment, rank, size)));
  }
  return group;
}

absl::Status SharedMemoryCollective::AllReduceSum(absl::Span<float> data) {
  ++num_all_reduces_;
  const uint64_t operation = ReduceOperation(data.size());
  size_t begin = 0;
  do {  // an empty tensor too: the ranks meet in every call
    const absl::Span<float> chunk = data.subspan(begin, kChunk);
    LOCKSTEP_RETURN_IF_ERROR(Exchange(operation, chunk));
    SumOverRanks(chunks_[parity_], chunk);
    begin += kChunk;
  } while (begin < data.size());
  return absl::OkStatus();
}

absl::Status SharedMemoryCollective::AllGather(absl::Span<const float> in,
                                               absl::Span<float> out) {
  ++num_all_gathers_;
  const uint64_t operation = GatherOperation(in.size());
  const bool in_place = in.data() == out.data() + rank_ * in.size();
  size_t begin = 0;
  do {
    const absl::Span<const float> chunk = in.subspan(begin, kChunk);
    LOCKSTEP_RETURN_IF_ERROR(Exchange(operation, chunk));
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_ && in_place) continue;
      std::copy_n(chunks_[parity_][rank], chunk.size(),
                  out.begin() + rank * in.size() + begin);
    }
    begin += kChunk;
  } while (begin < in.size());
  return absl::OkStatus();
}

void SharedMemoryCollective::End(const absl::Status& error) {
  segment_->barrier().Abort(error);
}

absl::Status SharedMemoryCollective::Exchange(uint64_t operation,
                                              absl::Span<const float> in) {
  parity_ ^= 1;
  SharedSegment::Slot& own = segment_->slot(rank_, parity_);
  own.operation = operation;
  std::copy(in.begin(), in.end(), own.chunk);
  SharedBarrier& barrier = segment_->barrier();
  const absl::Status met = barrier.Wait(
      {.rank = rank_, .size = size_, .spins = spins_, .timeout = timeout_});
  if (absl::IsDeadlineExceeded(met)) {
    const std::string late =
        absl::StrCat(OperationName(operation), ": ", met.message(), ".");
    // The others, too, blame who did not come.
    const std::optional<int> blamed = BlamedRank(met);
    const absl::Status ended = absl::UnavailableError(late);
    End(blamed.has_value() ? BlameRank(*blamed, ended) : ended);
    return WithMessage(met, late);
  }
  LOCKSTEP_RETURN_IF_ERROR(met);
  for (int rank = 0; rank < size_; ++rank) {
    const uint64_t other = segment_->slot(rank, parity_).operation;
    if (other == operation) continue;
    Abort(OutOfStep(rank_, operation, rank, other));
    return barrier.error();
  }
  return absl::OkStatus();
}

}  // namespace lockstep
