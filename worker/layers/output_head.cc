#include "worker/layers/output_head.h"

#include <algorithm>

namespace lockstep {

OutputHead::OutputHead(const RankContext& rank, int max_rows)
    : rank_(rank),
      normed_(static_cast<size_t>(max_rows) * rank.config->hidden_size),
      gathered_(static_cast<size_t>(max_rows) * rank.shard->vocab_rows *
                rank.shard->size) {}

int64_t OutputHead::Bytes(const ModelConfig& config, const Shard& shard,
                          int max_rows) {
  const int64_t floats =
      config.hidden_size + int64_t{shard.vocab_rows} * shard.size;
  return max_rows * floats * static_cast<int64_t>(sizeof(float));
}

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
  const size_t count = rows_ * columns;
  float* own = gathered_.data() + rank_.shard->rank * count;
  rank_.ops->Gemm(weights.head, normed_.data(), dim, rows_, own, columns);
  // The last rank's padding is gathered with the rest, then cut off.
  const int own_columns = weights.head.rows();
  for (size_t i = 0; own_columns < columns && i < rows_; ++i) {
    std::fill_n(own + i * columns + own_columns, columns - own_columns, 0.0f);
  }
  FinishLogits(own);
  return rank_.collective->AllGather(
      {own, count}, {gathered_.data(), count * rank_.shard->size});
}

// Before they are gathered: each rank does its own. Padding stays 0.
void OutputHead::FinishLogits(float* logits) {
  const ModelConfig& config = *rank_.config;
  const int columns = rank_.shard->vocab_rows;
  const int rows = static_cast<int>(rows_);
  if (config.logit_divisor != 1) {
    rank_.ops->Scale(logits, columns, rows, columns, 1 / config.logit_divisor);
  }
  if (config.logit_cap > 0) {
    rank_.ops->SoftCap(logits, columns, rows, columns, config.logit_cap);
  }
}

absl::Span<const float> OutputHead::Logits(int row,
                                           absl::Span<float> scratch) const {
  const size_t columns = rank_.shard->vocab_rows;
  if (scratch.size() <= columns) {
    return {gathered_.data() + row * columns, scratch.size()};
  }
  for (size_t begin = 0, rank = 0; begin < scratch.size();
       begin += columns, ++rank) {
    std::copy_n(gathered_.data() + (rank * rows_ + row) * columns,
                std::min(columns, scratch.size() - begin),
                scratch.begin() + begin);
  }
  return scratch;
}

}  // namespace lockstep
