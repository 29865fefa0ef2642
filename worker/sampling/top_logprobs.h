#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "proto/sampling.pb.h"
#include "worker/sampling/logit_blocks.h"

namespace lockstep {

// Log-probabilities of one position from its logits: log-softmax, ranks with
// ties by lower id.
//
//   TopLogprobs top(vocab_size);
//   const v1::PositionLogprobs logprobs = top.Of(logits, token, /*k=*/5);
//
// Holds scratch for one thread.
class TopLogprobs {
 public:
  explicit TopLogprobs(int vocab_size);

  // Of `token` and the `k` most probable ids, fewer if there are not so many.
  // NaN counts as minus infinity. REQUIRES: the size given at construction.
  v1::PositionLogprobs Of(absl::Span<const float> logits, uint32_t token,
                          int k);

 private:
  // The logarithm of the softmax's denominator, for logits less the largest.
  double LogSum(absl::Span<const float> logits);
  // `best_` becomes the k best ids, the best first.
  void FindBest(int k);

  LogitBlocks blocks_;
  std::vector<float> weights_;      // [vocab_size]
  std::vector<double> block_sums_;  // of weights_
  std::vector<uint32_t> best_;
};

}  // namespace lockstep
