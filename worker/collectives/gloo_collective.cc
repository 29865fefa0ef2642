#include "worker/collectives/gloo_collective.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/error_reason.h"
#include "common/status_macros.h"
#include "worker/collectives/operation.h"
#include "worker/collectives/rank_sum.h"

namespace lockstep {
namespace {

constexpr size_t kChunkFloats = 64 * 1024;

// What is smaller costs its round trips, not its bytes.
constexpr size_t kSliceFromFloats = 8 * 1024;

// A message begins with the sender's operation.
constexpr size_t kHeaderBytes = sizeof(uint64_t);

size_t MessageBytes(size_t count) {
  return kHeaderBytes + count * sizeof(float);
}

// Between the messages to different ranks, so that each is aligned.
size_t Stride(size_t count) {
  return (MessageBytes(count) + kHeaderBytes - 1) / kHeaderBytes * kHeaderBytes;
}

size_t SliceFloats(size_t count, int size) { return (count + size - 1) / size; }

}  // namespace

absl::StatusOr<std::unique_ptr<GlooCollective>> GlooCollective::Listen(
    const std::string& host, int rank, int size) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto mesh,
      GlooMesh::Listen({.host = host,
                        .rank = rank,
                        .size = size,
                        .max_message_bytes = MessageBytes(kChunkFloats),
                        .outgoing_bytes = std::max(
                            MessageBytes(kChunkFloats),
                            size * Stride(SliceFloats(kChunkFloats, size)))}));
  return std::unique_ptr<GlooCollective>(
      new GlooCollective(std::move(mesh), rank, size));
}

GlooCollective::GlooCollective(std::unique_ptr<GlooMesh> mesh, int rank,
                               int size)
    : mesh_(std::move(mesh)), rank_(rank), size_(size), parts_(size) {}

absl::Status GlooCollective::AllReduceSum(absl::Span<float> data) {
  ++num_all_reduces_;
  const uint64_t operation = ReduceOperation(data.size());
  size_t begin = 0;
  do {  // an empty tensor too: the ranks meet in every call
    const absl::Span<float> chunk = data.subspan(begin, kChunkFloats);
    LOCKSTEP_RETURN_IF_ERROR(size_ > 2 && chunk.size() >= kSliceFromFloats
                                 ? ReduceBySlices(operation, chunk)
                                 : ReduceAtAll(operation, chunk));
    begin += kChunkFloats;
  } while (begin < data.size());
  return absl::OkStatus();
}

absl::Status GlooCollective::AllGather(absl::Span<const float> in,
                                       absl::Span<float> out) {
  ++num_all_gathers_;
  const uint64_t operation = GatherOperation(in.size());
  const bool in_place = in.data() == out.data() + rank_ * in.size();
  size_t begin = 0;
  do {
    const absl::Span<const float> chunk = in.subspan(begin, kChunkFloats);
    LOCKSTEP_RETURN_IF_ERROR(ShowToAll(operation, chunk));
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_ && in_place) continue;
      std::copy_n(parts_[rank], chunk.size(),
                  out.begin() + rank * in.size() + begin);
    }
    begin += kChunkFloats;
  } while (begin < in.size());
  return absl::OkStatus();
}

absl::Status GlooCollective::ReduceAtAll(uint64_t operation,
                                         absl::Span<float> chunk) {
  LOCKSTEP_RETURN_IF_ERROR(ShowToAll(operation, chunk));
  SumOverRanks(parts_, chunk);
  return absl::OkStatus();
}

absl::Status GlooCollective::ReduceBySlices(uint64_t operation,
                                            absl::Span<float> chunk) {
  const size_t slice = SliceFloats(chunk.size(), size_);
  const auto slice_of = [&](int rank) {
    return chunk.subspan(std::min(rank * slice, chunk.size()), slice);
  };
  for (int rank = 0; rank < size_; ++rank) {
    Write(operation, slice_of(rank), rank, Stride(slice));
  }
  LOCKSTEP_RETURN_IF_ERROR(Exchange(
      operation, {.bytes = MessageBytes(slice), .stride = Stride(slice)}));
  const absl::Span<float> own = slice_of(rank_);
  SumOverRanks(parts_, own);
  // Every message has the size of a whole slice, the last one's too.
  Write(operation, own, /*index=*/0, /*stride=*/0);
  LOCKSTEP_RETURN_IF_ERROR(Exchange(operation, {.bytes = MessageBytes(slice)}));
  for (int rank = 0; rank < size_; ++rank) {
    const absl::Span<float> sum = slice_of(rank);
    if (rank != rank_) std::copy_n(parts_[rank], sum.size(), sum.begin());
  }
  return absl::OkStatus();
}

absl::Status GlooCollective::ShowToAll(uint64_t operation,
                                       absl::Span<const float> in) {
  Write(operation, in, /*index=*/0, /*stride=*/0);
  return Exchange(operation, {.bytes = MessageBytes(in.size())});
}

void GlooCollective::Write(uint64_t operation, absl::Span<const float> in,
                           int index, size_t stride) {
  char* const message = mesh_->outgoing() + index * stride;
  std::memcpy(message, &operation, kHeaderBytes);
  std::copy(in.begin(), in.end(),
            reinterpret_cast<float*>(message + kHeaderBytes));
}

absl::Status GlooCollective::Exchange(uint64_t operation,
                                      const GlooMesh::Layout& layout) {
  const absl::Status exchanged = mesh_->Exchange(layout, timeout_);
  if (absl::IsDeadlineExceeded(exchanged)) {
    return WithMessage(exchanged, absl::StrCat(OperationName(operation), ": ",
                                               exchanged.message()));
  }
  LOCKSTEP_RETURN_IF_ERROR(exchanged);
  for (int rank = 0; rank < size_; ++rank) {
    const char* const message = rank == rank_
                                    ? mesh_->sent() + rank * layout.stride
                                    : mesh_->incoming(rank);
    uint64_t other = 0;
    std::memcpy(&other, message, kHeaderBytes);
    if (other != operation) {
      Abort(OutOfStep(rank_, operation, rank, other));
      return mesh_->status();
    }
    parts_[rank] = reinterpret_cast<const float*>(message + kHeaderBytes);
  }
  return absl::OkStatus();
}

}  // namespace lockstep
