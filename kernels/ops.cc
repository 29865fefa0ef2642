#include "kernels/ops.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <cpuid.h>
#include <glog/logging.h>

#include <algorithm>

#include "kernels/attention.h"
#include "kernels/attention/kv_store.h"
#include "kernels/isa/kernel_table.h"
#include "kernels/row_range.h"
#include "kernels/simd/lanes.h"

namespace lockstep::kernels {
namespace {

// clang's __builtin_cpu_supports does not know its name.
bool HasF16C() {
  unsigned eax, ebx, ecx = 0, edx;
  return __get_cpuid(1, &eax, &ebx, &ecx, &edx) != 0 && (ecx & bit_F16C) != 0;
}

// __builtin_cpu_supports knows what the operating system saves (XGETBV).
bool HasAvx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
         HasF16C();
}

bool HasAvx512() {
  return HasAvx2() && __builtin_cpu_supports("avx512f") &&
         __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vnni");
}

absl::StatusOr<const KernelTable*> FindTable(absl::string_view isa) {
  const bool automatic = isa == "auto";
  if (isa == "avx512_vnni" || automatic) {
    if (HasAvx512()) return &kAvx512Kernels;
  }
  if (isa == "avx2" || automatic) {
    if (HasAvx2()) return &kAvx2Kernels;
  }
  if (isa == "reference" || automatic) return &kReferenceKernels;
  if (isa == "avx512_vnni" || isa == "avx2") {
    return absl::InvalidArgumentError(
        absl::StrCat("--cpu_isa=", isa, ": this processor, or its operating ",
                     "system, does not support it; use --cpu_isa=auto"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "--cpu_isa=\"", isa, "\" is none of auto, avx512_vnni, avx2, reference"));
}

// In lanes, as every reduction; without fused multiply-adds, so that plain code
// is quick and has the same bits everywhere.
float SumOfSquares(const float* x, int count) {
  float lanes[kLanes] = {};
  int i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int l = 0; l < kLanes; ++l) lanes[l] += x[i + l] * x[i + l];
  }
  for (; i < count; ++i) lanes[i % kLanes] += x[i] * x[i];
  return FoldLanes(lanes);
}

void CheckGroups(absl::Span<const RowGroup> groups, ptrdiff_t x_stride,
                 ptrdiff_t y_stride, int outputs) {
  const PackedMatrix& w = *groups.front().w;
  CHECK_GE(x_stride, w.cols());
  CHECK_GE(y_stride, outputs);
  int begin = 0;
  for (const RowGroup& group : groups) {
    CHECK_EQ(group.begin, begin);
    CHECK_GT(group.end, begin);
    CHECK_EQ(group.w->rows(), w.rows());
    CHECK_EQ(group.w->cols(), w.cols());
    CHECK_EQ(group.w->slice_cols(), w.slice_cols());
    CHECK(group.w->arithmetic() == w.arithmetic());
    begin = group.end;
  }
}

}  // namespace

absl::StatusOr<Ops> Ops::Create(absl::string_view isa, ThreadPool* pool) {
  absl::StatusOr<const KernelTable*> table = FindTable(isa);
  if (!table.ok()) return table.status();
  return Ops(*table, pool);
}

Ops::Ops(const KernelTable* table, ThreadPool* pool)
    : table_(table), pool_(pool), fast_(table->fast, pool) {}

const char* Ops::isa() const { return table_->isa; }

void Ops::Gemm(const PackedMatrix& w, const float* x, ptrdiff_t x_stride,
               int rows, float* y, ptrdiff_t y_stride, const float* bias) {
  if (rows == 0) return;
  const RowGroup group = {&w, 0, rows};
  CheckGroups({&group, 1}, x_stride, y_stride, /*outputs=*/w.rows());
  Multiply({&group, 1}, x, x_stride, y, y_stride, bias);
}

void Ops::GatedGemm(const PackedMatrix& gate_up, Gate gate, const float* x,
                    ptrdiff_t x_stride, int rows, float* scratch, float* y,
                    ptrdiff_t y_stride) {
  if (rows == 0) return;
  const RowGroup group = {&gate_up, 0, rows};
  GroupedGatedGemm({&group, 1}, gate, x, x_stride, scratch, y, y_stride);
}

void Ops::GroupedGemm(absl::Span<const RowGroup> groups, const float* x,
                      ptrdiff_t x_stride, float* y, ptrdiff_t y_stride) {
  if (groups.empty()) return;
  CheckGroups(groups, x_stride, y_stride, /*outputs=*/groups.front().w->rows());
  Multiply(groups, x, x_stride, y, y_stride, /*bias=*/nullptr);
}

void Ops::GroupedGatedGemm(absl::Span<const RowGroup> gate_up, Gate gate,
                           const float* x, ptrdiff_t x_stride, float* scratch,
                           float* y, ptrdiff_t y_stride) {
  if (gate_up.empty()) return;
  const PackedMatrix& w = *gate_up.front().w;
  const int dim = w.rows() / 2;
  CHECK_EQ(w.rows(), 2 * dim);
  CheckGroups(gate_up, x_stride, y_stride, /*outputs=*/dim);
  if (w.arithmetic() == Arithmetic::kFast && FastProduct::AreGated(gate_up)) {
    return fast_.MultiplyGated(gate_up, gate, x, x_stride, y, y_stride);
  }
  Multiply(gate_up, x, x_stride, scratch, 2 * dim, /*bias=*/nullptr);
  GatedMul(scratch, gate, 2 * dim, gate_up.back().end, dim, y, y_stride);
}

void Ops::Multiply(absl::Span<const RowGroup> groups, const float* x,
                   ptrdiff_t x_stride, float* y, ptrdiff_t y_stride,
                   const float* bias) {
  const PackedMatrix& w = *groups.front().w;
  if (w.arithmetic() == Arithmetic::kFast) {
    return fast_.Multiply(groups, x, x_stride, y, y_stride, bias);
  }
  StrictGemm(groups, x, x_stride, y, y_stride);
  if (bias == nullptr) return;
  const auto add = [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int j = 0; j < w.rows(); ++j) y[row * y_stride + j] += bias[j];
    }
  };
  pool_->For(groups.back().end, RowsPerRange(w.rows()), add);
}

void Ops::StrictGemm(absl::Span<const RowGroup> groups, const float* x,
                     ptrdiff_t x_stride, float* y, ptrdiff_t y_stride) {
  int64_t panels = 0;
  for (const RowGroup& group : groups) panels += group.w->panels();
  // Little more than a kernel multiplies together, so that small matrices too
  // divide evenly.
  const int panels_per_range = groups.front().rows() <= 4 ? 3 : 2;
  pool_->For(panels, panels_per_range, [&](int64_t begin, int64_t end) {
    int64_t first = 0;  // panel of all where the segment starts
    for (const RowGroup& group : groups) {
      const PackedMatrix& w = *group.w;
      for (const PackedMatrix::Segment& segment : w.segments()) {
        const int64_t panel_begin = std::max(begin - first, int64_t{0});
        const int64_t panel_end =
            std::min<int64_t>(end - first, segment.panels());
        first += segment.panels();
        if (panel_begin >= panel_end) continue;
        table_->gemm(
            {&segment, w.cols(), w.slice_cols(), static_cast<int>(panel_begin),
             static_cast<int>(panel_end), x + group.begin * x_stride, x_stride,
             group.rows(), y + group.begin * y_stride, y_stride});
      }
    }
  });
}

void Ops::RmsNorm(const float* x, ptrdiff_t x_stride, int rows, int dim,
                  const float* weight, float eps, float* y,
                  ptrdiff_t y_stride) {
  pool_->For(rows, RowsPerRange(dim), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      table_->rms_norm(x + row * x_stride, dim, weight, eps,
                       y + row * y_stride);
    }
  });
}

void Ops::NormRope(float* x, ptrdiff_t token_stride, int heads, int head_dim,
                   const float* norm_weight, float eps, RopeStyle style,
                   int rotary_dim, const float* cos, const float* sin,
                   const TokenBatch& batch) {
  CHECK_LE(rotary_dim, head_dim);
  const int64_t grain = RowsPerRange(int64_t{heads} * head_dim);
  pool_->For(batch.num_tokens, grain, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      const ptrdiff_t angles =
          static_cast<ptrdiff_t>(batch.positions[token]) * (rotary_dim / 2);
      for (int head = 0; head < heads; ++head) {
        float* vector = x + token * token_stride + head * head_dim;
        if (norm_weight != nullptr) {
          table_->rms_norm(vector, head_dim, norm_weight, eps, vector);
        }
        Rotate(style, rotary_dim, cos + angles, sin + angles, vector);
      }
    }
  });
}

void Ops::StoreKv(const float* k, ptrdiff_t k_stride, const float* v,
                  ptrdiff_t v_stride, const TokenBatch& batch,
                  const PagedKv& kv) {
  const int64_t grain = RowsPerRange(int64_t{kv.num_kv_heads} * kv.head_dim);
  pool_->For(batch.num_tokens, grain, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      StoreTokenKv(k + token * k_stride, v + token * v_stride, batch,
                   static_cast<int>(token), kv);
    }
  });
}

void Ops::Attention(const float* q, ptrdiff_t q_stride, int heads,
                    const int32_t* kv_head_of, const AttentionRule& rule,
                    const TokenBatch& batch, const PagedKv& kv, float* out,
                    ptrdiff_t out_stride) {
  CHECK_LE(kv.head_dim, kMaxHeadDim);
  ComputeAttention(
      *table_, *pool_,
      {q, q_stride, heads, kv_head_of, rule, &batch, &kv, out, out_stride});
}

void Ops::GatedMul(const float* gate_up, Gate gate, ptrdiff_t stride, int rows,
                   int dim, float* y, ptrdiff_t y_stride) {
  pool_->For(rows, RowsPerRange(dim), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* x = gate_up + row * stride;
      table_->gated_mul(gate, x, x + dim, dim, y + row * y_stride);
    }
  });
}

void Ops::SoftCap(float* x, ptrdiff_t stride, int rows, int dim, float cap) {
  pool_->For(rows, RowsPerRange(dim), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      table_->soft_cap(x + row * stride, dim, cap);
    }
  });
}

void Ops::Scale(float* x, ptrdiff_t stride, int rows, int dim, float factor) {
  pool_->For(rows, RowsPerRange(dim), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int i = 0; i < dim; ++i) x[row * stride + i] *= factor;
    }
  });
}

void Ops::HeadSquares(const float* x, ptrdiff_t token_stride, int tokens,
                      int heads, int head_dim, float* out,
                      ptrdiff_t out_stride) {
  if (heads == 0) return;
  const int64_t grain = RowsPerRange(int64_t{heads} * head_dim);
  pool_->For(tokens, grain, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      for (int head = 0; head < heads; ++head) {
        out[token * out_stride + head] =
            SumOfSquares(x + token * token_stride + head * head_dim, head_dim);
      }
    }
  });
}

void Ops::ChooseExperts(float* logits, int tokens, int num_experts,
                        const ExpertRule& rule, const float* bias,
                        int32_t* experts, float* weights) {
  CHECK_GE(rule.groups, rule.groups_chosen);
  CHECK_EQ(num_experts % rule.groups, 0);
  CHECK_LE(rule.count, num_experts / rule.groups * rule.groups_chosen);
  CHECK(rule.sigmoid || (bias == nullptr && rule.groups == 1));
  pool_->For(
      tokens, RowsPerRange(int64_t{16} * num_experts),
      [&](int64_t begin, int64_t end) {
        for (int64_t token = begin; token < end; ++token) {
          kernels::ChooseExperts(
              {logits + token * num_experts, static_cast<size_t>(num_experts)},
              rule, bias, experts + token * rule.count,
              weights + token * rule.count);
        }
      });
}

void Ops::Sigmoid(float* x, int count) {
  for (int i = 0; i < count; ++i) x[i] = 1.0f / (1.0f + Exp(0.0f - x[i]));
}

void Ops::Add(float* x, ptrdiff_t x_stride, const float* y, ptrdiff_t y_stride,
              int rows, int dim, float scale) {
  pool_->For(rows, RowsPerRange(dim), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* sum = x + row * x_stride;
      const float* term = y + row * y_stride;
      for (int i = 0; i < dim; ++i) sum[i] += scale * term[i];
    }
  });
}

}  // namespace lockstep::kernels
