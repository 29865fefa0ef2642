#include "worker/layers/embedding.h"

#include <algorithm>
#include <functional>

#include "kernels/threads/thread_pool.h"
#include "kernels/weights/dtype.h"

namespace lockstep {

absl::Status Embed(const RankContext& rank, const ModelWeights& weights,
                   absl::Span<const uint32_t> ids, float* hidden) {
  const int64_t dim = rank.config->hidden_size;
  const int64_t first = rank.shard->vocab_begin;
  const float scale = rank.config->embedding_scale;
  const auto embed_rows = [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* out = hidden + i * dim;
      const int64_t row = ids[i] - first;
      if (row < 0 || row >= weights.embedding_rows) {
        std::fill_n(out, dim, 0.0f);
        continue;
      }
      kernels::DecodeRow(weights.embedding_type,
                         weights.embedding + row * weights.embedding_row_bytes,
                         dim, out);
      // Makes -0 into +0, as adding other ranks' zeros does: the same bits
      // on every number of ranks.
      for (int64_t j = 0; j < dim; ++j) out[j] = out[j] * scale + 0.0f;
    }
  };
  // By reference, so that std::function does not allocate.
  rank.ops->pool().For(ids.size(), /*grain=*/8, std::ref(embed_rows));
  return rank.collective->AllReduceSum({hidden, ids.size() * dim});
}

}  // namespace lockstep
