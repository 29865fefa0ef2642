#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <cstdint>

#include "kernels/attention/paged_kv.h"
#include "kernels/ops.h"
#include "worker/layers/activations.h"
#include "worker/layers/experts_block.h"
#include "worker/layers/output_head.h"
#include "worker/layers/rank_context.h"
#include "worker/layers/rope_table.h"
#include "worker/weights/model_weights.h"

namespace lockstep {

// The tokens of one step, in batch order, and which of them want logits.
struct DecoderInput {
  absl::Span<const uint32_t> token_ids;  // [batch.num_tokens]
  kernels::TokenBatch batch;
  absl::Span<const int32_t> logits_tokens;  // indices into the batch
};

// A decoder-only transformer as its config describes it: one rank's part of
// the forward pass. Used by the engine's thread.
//
//   LOCKSTEP_RETURN_IF_ERROR(decoder.Forward(input, kv_layers));
//   const absl::Span<const float> logits = decoder.Logits(row, scratch);
//
// A pass makes 2·layers + 1 all-reduces, a layer one more where whole
// projections are normed, and, if any token wants logits, one all-gather,
// whatever the number of ranks. The logits of a token are a
// function of its sequence up to it alone: the rest of the batch changes no
// bit.
class Decoder {
 public:
  struct Limits {
    int positions = 0;  // of a sequence
    int tokens = 0;     // of a step
    int logits_rows = 0;
  };

  // Bytes of the buffers and tables that a decoder makes; what the kernels
  // reserve is less, and not among them.
  static int64_t Bytes(const ModelConfig& config, const Shard& shard,
                       const Limits& limits);

  // `weights` and what `rank` points to must outlive this.
  Decoder(const RankContext& rank, const ModelWeights* weights,
          const Limits& limits);

  // kv [num_layers]: the pages of each layer, which get the batch's keys and
  // values. An error is the collective's.
  absl::Status Forward(const DecoderInput& input,
                       absl::Span<const kernels::PagedKv> kv);

  // Of the batch's tokens first … first + count - 1 of the last Forward, after
  // the last norm: [count, hidden_size], on every rank. Computed here; valid
  // until the next Forward.
  const float* HiddenStates(int first, int count);

  // Of logits_tokens[row] of the last Forward; see OutputHead. Any thread.
  absl::Span<const float> Logits(int row, absl::Span<float> scratch) const {
    return head_.Logits(row, scratch);
  }

 private:
  const RankContext rank_;
  const ModelWeights* const weights_;
  const RopeTable rope_;
  const RopeTable local_rope_;  // of no positions where no layer has it
  Activations activations_;
  ExpertsBlock experts_;
  OutputHead head_;
};

}  // namespace lockstep
