#include "worker/cuda_engine/staged_batch.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstring>

#include "common/status_macros.h"
#include "kernels/cuda/gather.h"
#include "worker/core/sequence.h"

namespace lockstep {
namespace {

// Of each array, so that kernels may read it in large pieces.
constexpr size_t kAlignment = 16;

// Chunks of long sequences that blocks of their own compute, in a step: a few
// for each multiprocessor of the largest GPUs.
constexpr int kMaxPartials = 512;

size_t Aligned(size_t bytes) {
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

StagedBatch::StagedBatch(const Limits& limits, DeviceLayout* layout)
    : limits_(limits), attention_(limits.windows.size()) {
  layout->Add("a step's batch", MostBytes(), &on_device_);
  layout->Add("the partials of attention",
              size_t{kMaxPartials} * limits.heads *
                  (limits.head_dim + cuda::kPartialExtra),
              &partials_);
}

size_t StagedBatch::MostBytes() const {
  const size_t tokens = limits_.tokens;
  const size_t tiles = tokens + kMaxPartials;
  return 3 * Aligned(tokens * sizeof(int32_t)) +
         Aligned(size_t{1} * limits_.sequences * limits_.pages *
                 sizeof(int32_t)) +
         Aligned(limits_.logits_rows * sizeof(int32_t)) +
         limits_.windows.size() *
             (Aligned(tiles * sizeof(cuda::AttentionTile)) +
              Aligned(kMaxPartials * sizeof(cuda::AttentionMerge)));
}

absl::Status StagedBatch::AllocatePinned(const CudaDevice* device) {
  for (auto& pinned : pinned_) {
    LOCKSTEP_ASSIGN_OR_RETURN(pinned,
                              PinnedMemory::Allocate(device, MostBytes()));
  }
  return absl::OkStatus();
}

template <typename T>
const T* StagedBatch::Put(const T* values, size_t count) {
  const size_t begin = used_;
  used_ += Aligned(count * sizeof(T));
  CHECK_LE(used_, pinned().bytes());
  if (count > 0) {
    std::memcpy(static_cast<std::byte*>(pinned().data()) + begin, values,
                count * sizeof(T));
  }
  return reinterpret_cast<const T*>(on_device_ + begin);
}

absl::Status StagedBatch::Stage(const StepPlan& plan, const DecoderInput& input,
                                absl::Span<const int> rows_before,
                                CudaStream* stream) {
  used_ = 0;
  newest_ = 1 - newest_;
  const kernels::TokenBatch& batch = input.batch;
  PutTokenIds(plan, input, rows_before);
  logits_tokens_ = Put(input.logits_tokens.data(), input.logits_tokens.size());
  paged_.num_tokens = batch.num_tokens;
  paged_.positions = Put(batch.positions, batch.num_tokens);
  paged_.sequence_of = Put(batch.sequence_of, batch.num_tokens);
  PutPageTables(plan);
  PutAttention(input);
  return stream->CopyToDevice(reinterpret_cast<CudaApi::Address>(on_device_),
                              pinned().data(), used_);
}

// First of all, where the last token of a span that is not known yet is told
// apart by its place among the best ids of the step before.
void StagedBatch::PutTokenIds(const StepPlan& plan, const DecoderInput& input,
                              absl::Span<const int> rows_before) {
  token_ids_ = Put(input.token_ids.data(), input.token_ids.size());
  auto* const ids = static_cast<uint32_t*>(pinned().data());
  int end = 0;
  for (const SequenceSpan& span : plan.spans) {
    end += span.count;
    if (span.token_from < 0) continue;
    const int row = rows_before[span.token_from];
    CHECK_GE(row, 0) << "span " << span.token_from << " samples nothing";
    ids[end - 1] = cuda::kIsChosen | static_cast<uint32_t>(row);
  }
}

// As many of each sequence as the longest has up to its span's end.
void StagedBatch::PutPageTables(const StepPlan& plan) {
  int stride = 0;
  for (const SequenceSpan& span : plan.spans) {
    const int end = span.begin + span.count;
    stride =
        std::max(stride, (end + limits_.page_size - 1) / limits_.page_size);
  }
  CHECK_LE(stride, limits_.pages);
  const size_t begin = used_;
  used_ += Aligned(plan.spans.size() * stride * sizeof(int32_t));
  CHECK_LE(used_, pinned().bytes());
  auto* row = reinterpret_cast<int32_t*>(
      static_cast<std::byte*>(pinned().data()) + begin);
  for (const SequenceSpan& span : plan.spans) {
    const absl::Span<const int32_t> pages = span.sequence->pages();
    const size_t count = std::min<size_t>(pages.size(), stride);
    std::fill(std::copy_n(pages.begin(), count, row), row + stride, 0);
    row += stride;
  }
  paged_.page_tables = reinterpret_cast<const int32_t*>(on_device_ + begin);
  paged_.page_table_stride = stride;
}

void StagedBatch::PutAttention(const DecoderInput& input) {
  for (size_t i = 0; i < limits_.windows.size(); ++i) {
    const cuda::AttentionPlan plan = cuda::PlanAttention(
        {.num_tokens = input.batch.num_tokens,
         .positions = input.batch.positions,
         .sequence_of = input.batch.sequence_of,
         .heads_per_kv_head = limits_.heads / limits_.kv_heads,
         .window = limits_.windows[i]},
        kMaxPartials);
    attention_[i] = {.tiles = Put(plan.tiles.data(), plan.tiles.size()),
                     .num_tiles = static_cast<int>(plan.tiles.size()),
                     .merges = Put(plan.merges.data(), plan.merges.size()),
                     .num_merges = static_cast<int>(plan.merges.size()),
                     .partials = partials_};
  }
}

const cuda::DeviceAttentionPlan& StagedBatch::attention(int window) const {
  const auto found =
      std::find(limits_.windows.begin(), limits_.windows.end(), window);
  CHECK(found != limits_.windows.end()) << window;
  return attention_[found - limits_.windows.begin()];
}

}  // namespace lockstep
