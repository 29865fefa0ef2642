#pragma once

#include <absl/types/span.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "proto/sampling.pb.h"

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
  // REQUIRES: no NaN; the size given at construction.
  v1::PositionLogprobs Of(absl::Span<const float> logits, uint32_t token,
                          int k);

 private:
  // `best_` becomes the k largest, the largest first.
  void FindBest(absl::Span<const float> logits, int k);

  std::vector<float> weights_;  // [vocab_size]
  std::vector<std::pair<float, uint32_t>> best_;
};

}  // namespace lockstep
