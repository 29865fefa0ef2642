#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <cstdint>

#include "worker/layers/float_buffer.h"
#include "worker/layers/rank_context.h"
#include "worker/weights/model_weights.h"

namespace lockstep {

// From the residual stream to logits, scaled and capped as the model has it,
// for the tokens whose logits are wanted.
// Each rank computes its rows of the vocabulary; one all-gather gives all of
// them to all.
//
//   LOCKSTEP_RETURN_IF_ERROR(head.Forward(weights, hidden, tokens));
//   const absl::Span<const float> logits = head.Logits(row, scratch);
class OutputHead {
 public:
  OutputHead(const RankContext& rank, int max_rows);

  // Of the buffers for so many rows.
  static int64_t Bytes(const ModelConfig& config, const Shard& shard,
                       int max_rows);

  // Row i is of token tokens[i]; hidden [num_tokens, hidden_size]. No tokens,
  // no all-gather. REQUIRES: at most max_rows tokens.
  absl::Status Forward(const ModelWeights& weights, const float* hidden,
                       absl::Span<const int32_t> tokens);

  // The logits [vocab_size] of a row of the last Forward: where they lie, or,
  // where several ranks computed them, put together in `scratch`, which has as
  // many. Any thread.
  absl::Span<const float> Logits(int row, absl::Span<float> scratch) const;

 private:
  void FinishLogits(float* logits);

  const RankContext rank_;
  size_t rows_ = 0;       // of the last Forward
  FloatBuffer normed_;    // [rows, hidden_size]
  FloatBuffer gathered_;  // [ranks, rows, vocab_rows]
};

}  // namespace lockstep
