// The oracle: every kernel as its definition reads, one element at a time.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernel_table.h"
#include "kernels/lanes.h"
#include "kernels/packed_format.h"
#include "kernels/tree_sum.h"

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

  float key(int position, int d) const {
    const PagedKv& kv = *args.kv;
    const size_t first = kv.KeyOffset(args.pages[position / kv.page_size],
                                      args.kv_head, position % kv.page_size);
    return kv.keys[first + static_cast<size_t>(d) * kv.page_size];
  }
  float value(int position, int d) const {
    const PagedKv& kv = *args.kv;
    return kv.values[kv.Offset(args.pages[position / kv.page_size],
                               args.kv_head, position % kv.page_size) +
                     d];
  }
};

float Score(const float* q, const Cache& cache, int position, int head_dim) {
  float score = 0;
  for (int d = 0; d < head_dim; ++d) {
    score = std::fma(q[d], cache.key(position, d), score);
  }
  return score;
}

void AttendRow(const AttendArgs& args, int row) {
  const int head_dim = args.kv->head_dim;
  const Cache cache = {args};
  const float* q = args.q + row * head_dim;
  float* out = args.out + row * head_dim;
  std::fill_n(out, head_dim, 0.0f);
  float max = -std::numeric_limits<float>::infinity();
  float sum = 0;
  const int end = args.first_position + row / args.rows_per_token + 1;
  for (int begin = 0; begin < end; begin += kAttendBlock) {
    const int count = std::min(kAttendBlock, end - begin);
    float weight[kAttendBlock] = {};
    float new_max = max;
    for (int j = 0; j < count; ++j) {
      weight[j] = Score(q, cache, begin + j, head_dim);
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
    for (int d = 0; d < head_dim; ++d) {
      float value = out[d] * rescale;
      for (int j = 0; j < count; ++j) {
        value = std::fma(weight[j], cache.value(begin + j, d), value);
      }
      out[d] = value;
    }
  }
  const float scale = 1.0f / sum;
  for (int d = 0; d < head_dim; ++d) out[d] *= scale;
}

void Attend(const AttendArgs& args) {
  for (int row = 0; row < args.rows; ++row) AttendRow(args, row);
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

void SiluMul(const float* gate, const float* up, int dim, float* y) {
  for (int i = 0; i < dim; ++i) {
    y[i] = gate[i] / (1.0f + Exp(-gate[i])) * up[i];
  }
}

}  // namespace

const KernelTable kReferenceKernels = {
    .isa = "reference",
    .fast = &kReferenceFastKernels,
    .gemm = Gemm,
    .attend = Attend,
    .rms_norm = RmsNorm,
    .silu_mul = SiluMul,
};

}  // namespace lockstep::kernels
