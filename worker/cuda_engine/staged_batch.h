#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/cuda/attention.h"
#include "kernels/cuda/attention_plan.h"
#include "kernels/cuda/paged_batch.h"
#include "worker/core/step_plan.h"
#include "worker/device/cuda_stream.h"
#include "worker/device/device_layout.h"
#include "worker/device/pinned_memory.h"
#include "worker/models/decoder.h"

namespace lockstep {

// The tokens of a step as kernels read them: put together in page-locked memory
// and brought to the device by one copy, together with the plans of attention,
// one for each window that layers have.
//
//   LOCKSTEP_RETURN_IF_ERROR(batch.Stage(plan, builder.input(), rows, stream));
//   …launch kernels that read batch.paged()…
//
// There are two of these in page-locked memory, for two steps in flight: before
// the next Stage but one this one's step must have run. On the device there is
// one, as the stream brings the next only when the step has. Used by the
// engine's thread.
class StagedBatch {
 public:
  struct Limits {
    int page_size = 0;
    int tokens = 0;  // of a step
    int sequences = 0;
    int pages = 0;  // of a sequence
    int logits_rows = 0;
    // Of the rank's part of the model.
    int heads = 0;
    int kv_heads = 0;
    int head_dim = 0;
    std::vector<int> windows;  // of the layers, each once
  };

  // Names what it takes on the device; it is where `layout` places it.
  StagedBatch(const Limits& limits, DeviceLayout* layout);
  StagedBatch(const StagedBatch&) = delete;
  StagedBatch& operator=(const StagedBatch&) = delete;

  // Before the first Stage.
  absl::Status AllocatePinned(const CudaDevice* device);

  // Puts the copy on the stream. `input` is what a BatchBuilder made of `plan`,
  // whose limits are the same. Of the step before, which may be in flight,
  // rows_before[span] is where in its best ids a span's token will be.
  absl::Status Stage(const StepPlan& plan, const DecoderInput& input,
                     absl::Span<const int> rows_before, CudaStream* stream);

  // Of the last Stage, in device memory. See cuda::TokenIds.
  const uint32_t* token_ids() const { return token_ids_; }
  const int32_t* logits_tokens() const { return logits_tokens_; }
  const cuda::PagedBatch& paged() const { return paged_; }
  // For layers with such a window. REQUIRES: it is among the limits'.
  const cuda::DeviceAttentionPlan& attention(int window) const;

 private:
  size_t MostBytes() const;
  PinnedMemory& pinned() const { return *pinned_[newest_]; }
  // Appends values to what is staged; returns where they will be.
  template <typename T>
  const T* Put(const T* values, size_t count);
  void PutTokenIds(const StepPlan& plan, const DecoderInput& input,
                   absl::Span<const int> rows_before);
  void PutPageTables(const StepPlan& plan);
  void PutAttention(const DecoderInput& input);

  const Limits limits_;
  std::byte* on_device_ = nullptr;  // [MostBytes()]
  float* partials_ = nullptr;       // of attention
  std::unique_ptr<PinnedMemory> pinned_[2];
  int newest_ = 0;  // of pinned_
  size_t used_ = 0;

  const uint32_t* token_ids_ = nullptr;
  const int32_t* logits_tokens_ = nullptr;
  cuda::PagedBatch paged_;
  std::vector<cuda::DeviceAttentionPlan> attention_;  // one a window
};

}  // namespace lockstep
