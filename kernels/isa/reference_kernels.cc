// The oracle: every kernel as its definition reads, one element at a time.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "kernels/attention/attend_args.h"
#include "kernels/attention/attention_rule.h"
#include "kernels/attention/kv_store.h"
#include "kernels/isa/kernel_table.h"
#include "kernels/product/gemm_args.h"
#include "kernels/product/tree_sum.h"
#include "kernels/simd/gate.h"
#include "kernels/simd/lanes.h"
#include "kernels/weights/packed_format.h"

namespace lockstep::kernels {
namespace {

void Gemm(const GemmArgs& args) {
  const PackedMatrix::Segment& w = *args.segment;
  const int row_end = std::min(w.rows, args.panel_end * kPanelRows);
  for (int j = args.panel_begin * kPanelRows; j < row_end; ++j) {
    const uint8_t* panel = w.data + (j / kPanelRows) * w.panel_bytes;
    for (int i = 0; i < args.rows; ++i) {
      const float* x = args.x + i * args.x_stride;
      const auto slice_sum = [&](int slice) {
        const uint8_t* weights = panel + slice * w.slice_bytes;
        float sum = 0;
        for (int k = 0; k < args.slice_cols; ++k) {
          sum = std::fma(x[slice * args.slice_cols + k],
                         PackedValue(w.type, weights, j % kPanelRows, k), sum);
        }
        return sum;
      };
      args.y[i * args.y_stride + w.row_begin + j] =
          TreeSum(args.cols / args.slice_cols, slice_sum);
    }
  }
}

// One sequence's keys and values of one head, by position.
struct Cache {
  const AttendArgs& args;

  const PagedKv& kv() const { return *args.kv; }
  int32_t page(int position) const {
    return args.pages[position / kv().page_size];
  }
  int slot(int position) const { return position % kv().page_size; }

  float key(int position, int d) const {
    const size_t first =
        kv().KeyOffset(page(position), args.kv_head, slot(position));
    return DecodeKv(kv().type, kv().keys,
                    first + static_cast<size_t>(d) * kv().page_size);
  }
  float value(int position, int d) const {
    const size_t first =
        kv().Offset(page(position), args.kv_head, slot(position));
    return DecodeKv(kv().type, kv().values, first + d);
  }
  // Of a position's key or value.
  float scale(const float* scales, int position) const {
    if (kv().type != KvType::kInt8) return 1;
    return scales[kv().ScaleOffset(page(position), args.kv_head,
                                   slot(position))];
  }
};

float Score(const float* q, const Cache& cache, int position) {
  const AttentionRule& rule = cache.args.rule;
  float score = 0;
  for (int d = 0; d < cache.kv().head_dim; ++d) {
    score = std::fma(q[d] * rule.scale, cache.key(position, d), score);
  }
  score *= cache.scale(cache.kv().key_scales, position);
  return rule.soft_cap > 0 ? SoftCap(score, rule.soft_cap) : score;
}

// Row `row` over the positions of [begin, end), in one chunk, that it sees.
void AttendRow(const AttendArgs& args, int row, int begin, int end,
               AttendSums sums) {
  const int head_dim = args.kv->head_dim;
  const Cache cache = {args};
  const int first_seen = FirstSeen(
      args.first_position + row / args.rows_per_token, args.rule.window);
  const float* q = args.q + row / args.rows_per_token * args.q_stride +
                   args.heads[row % args.rows_per_token] * head_dim;
  float* out = sums.out + row * PaddedHeadDim(head_dim);
  std::fill_n(out, head_dim, 0.0f);
  constexpr float kNone = -std::numeric_limits<float>::infinity();
  float max = kNone;
  float sum = 0;
  for (; begin < end; begin += kAttendBlock) {
    const int count = std::min(kAttendBlock, end - begin);
    if (first_seen >= begin + count) continue;
    float weight[kAttendBlock] = {};
    float new_max = max;
    for (int j = 0; j < count; ++j) {
      weight[j] = begin + j < first_seen ? kNone : Score(q, cache, begin + j);
      new_max = std::max(new_max, weight[j]);
    }
    for (int j = 0; j < count; ++j) weight[j] = Exp(weight[j] - new_max);
    float lanes[kLanes];
    for (int l = 0; l < kLanes; ++l) {
      lanes[l] =
          (weight[l] + weight[l + 16]) + (weight[l + 32] + weight[l + 48]);
    }
    const float rescale = Exp(max - new_max);
    sum = std::fma(sum, rescale, FoldLanes(lanes));
    max = new_max;
    for (int j = 0; j < count; ++j) {
      weight[j] *= cache.scale(args.kv->value_scales, begin + j);
    }
    for (int d = 0; d < head_dim; ++d) {
      float value = out[d] * rescale;
      for (int j = 0; j < count; ++j) {
        value = std::fma(weight[j], cache.value(begin + j, d), value);
      }
      out[d] = value;
    }
  }
  sums.max[row] = max;
  sums.sum[row] = sum;
}

void AttendChunk(const AttendArgs& args, int chunk, AttendSums sums) {
  const int begin = chunk * kAttendChunk;
  for (int row = 0; row < args.rows; ++row) {
    const int end = args.first_position + row / args.rows_per_token + 1;
    AttendRow(args, row, begin, std::min(end, begin + kAttendChunk), sums);
  }
}

void MergeChunk(const AttendArgs& args, AttendSums chunk, AttendSums sums) {
  const int padded_dim = PaddedHeadDim(args.kv->head_dim);
  for (int row = 0; row < args.rows; ++row) {
    if (std::isinf(chunk.max[row])) continue;  // it sees none of it
    const float max = std::max(sums.max[row], chunk.max[row]);
    const float scale = Exp(sums.max[row] - max);
    const float chunk_scale = Exp(chunk.max[row] - max);
    sums.max[row] = max;
    sums.sum[row] =
        std::fma(sums.sum[row], scale, chunk.sum[row] * chunk_scale);
    for (int d = 0; d < args.kv->head_dim; ++d) {
      float& out = sums.out[row * padded_dim + d];
      out = std::fma(out, scale, chunk.out[row * padded_dim + d] * chunk_scale);
    }
  }
}

void FinishAttention(const AttendArgs& args, AttendSums sums) {
  const int head_dim = args.kv->head_dim;
  for (int row = 0; row < args.rows; ++row) {
    const float scale = 1.0f / sums.sum[row];
    float* out = args.out + row / args.rows_per_token * args.out_stride +
                 args.heads[row % args.rows_per_token] * head_dim;
    for (int d = 0; d < head_dim; ++d) {
      out[d] = sums.out[row * PaddedHeadDim(head_dim) + d] * scale;
    }
  }
}

void RmsNorm(const float* x, int dim, const float* weight, float eps,
             float* y) {
  float lanes[kLanes] = {};
  for (int i = 0; i < dim; ++i) {
    lanes[i % kLanes] = std::fma(x[i], x[i], lanes[i % kLanes]);
  }
  const float mean = FoldLanes(lanes) / static_cast<float>(dim);
  const float scale = 1.0f / std::sqrt(mean + eps);
  for (int i = 0; i < dim; ++i) y[i] = x[i] * scale * weight[i];
}

void CapRow(float* x, int count, float cap) {
  for (int i = 0; i < count; ++i) x[i] = SoftCap(x[i], cap);
}

void GatedMul(Gate gate, const float* x, const float* up, int dim, float* y) {
  for (int i = 0; i < dim; ++i) y[i] = Gated(gate, x[i], up[i]);
}

}  // namespace

const KernelTable kReferenceKernels = {
    .isa = "reference",
    .fast = &kReferenceFastKernels,
    .gemm = Gemm,
    .attend_chunk = AttendChunk,
    .merge_chunk = MergeChunk,
    .finish_attention = FinishAttention,
    .rms_norm = RmsNorm,
    .gated_mul = GatedMul,
    .soft_cap = CapRow,
};

}  // namespace lockstep::kernels
