#include "worker/layers/output_head.h"

#include <algorithm>

namespace lockstep {

OutputHead::OutputHead(const RankContext& rank, int max_rows)
    : rank_(rank),
      normed_(static_cast<size_t>(max_rows) * rank.config->hidden_size),
      local_(static_cast<size_t>(max_rows) * rank.shard->vocab_rows),
      gathered_(local_.size() * rank.shard->size) {}

absl::Status OutputHead::Forward(const ModelWeights& weights,
                                 const float* hidden,
                                 absl::Span<const int32_t> tokens) {
  rows_ = tokens.size();
  if (rows_ == 0) return absl::OkStatus();
  const int dim = rank_.config->hidden_size;
  const int columns = rank_.shard->vocab_rows;

  for (size_t i = 0; i < rows_; ++i) {
    std::copy_n(hidden + static_cast<size_t>(tokens[i]) * dim, dim,
                normed_.data() + i * dim);
  }
  rank_.ops->RmsNorm(normed_.data(), dim, rows_, dim, weights.final_norm.data(),
                     rank_.config->norm_eps, normed_.data(), dim);
  rank_.ops->Gemm(weights.head, normed_.data(), dim, rows_, local_.data(),
                  columns);
  // The last rank's padding is gathered with the rest, then cut off.
  const int own = weights.head.rows();
  for (size_t i = 0; own < columns && i < rows_; ++i) {
    std::fill_n(local_.data() + i * columns + own, columns - own, 0.0f);
  }
  const size_t count = rows_ * columns;
  return rank_.collective->AllGather(
      {local_.data(), count}, {gathered_.data(), count * rank_.shard->size});
}

void OutputHead::CopyLogits(int row, absl::Span<float> out) const {
  const size_t columns = rank_.shard->vocab_rows;
  for (size_t begin = 0, rank = 0; begin < out.size();
       begin += columns, ++rank) {
    std::copy_n(gathered_.data() + (rank * rows_ + row) * columns,
                std::min(columns, out.size() - begin), out.begin() + begin);
  }
}

}  // namespace lockstep
