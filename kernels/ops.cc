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
  CHECK_GE(x_stride, w.cols());
  CHECK_GE(y_stride, w.rows());
  if (rows == 0) return;
  if (w.arithmetic() == Arithmetic::kFast) {
    return fast_.Multiply(w, x, x_stride, rows, y, y_stride, bias);
  }
  StrictGemm(w, x, x_stride, rows, y, y_stride);
  if (bias != nullptr) {
    pool_->For(rows, RowsPerRange(w.rows()), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int j = 0; j < w.rows(); ++j) y[row * y_stride + j] += bias[j];
      }
    });
  }
}

void Ops::GatedGemm(const PackedMatrix& gate_up, const float* x,
                    ptrdiff_t x_stride, int rows, float* scratch, float* y,
                    ptrdiff_t y_stride) {
  const int dim = gate_up.rows() / 2;
  CHECK_GE(x_stride, gate_up.cols());
  CHECK_GE(y_stride, dim);
  if (rows == 0) return;
  if (gate_up.arithmetic() == Arithmetic::kFast &&
      FastProduct::IsGated(gate_up)) {
    return fast_.MultiplyGated(gate_up, x, x_stride, rows, y, y_stride);
  }
  Gemm(gate_up, x, x_stride, rows, scratch, 2 * dim);
  SiluMul(scratch, 2 * dim, rows, dim, y, y_stride);
}

void Ops::StrictGemm(const PackedMatrix& w, const float* x, ptrdiff_t x_stride,
                     int rows, float* y, ptrdiff_t y_stride) {
  // Little more than a kernel multiplies together, so that small matrices too
  // divide evenly.
  const int panels_per_range = rows <= 4 ? 3 : 2;
  pool_->For(w.panels(), panels_per_range, [&](int64_t begin, int64_t end) {
    int first = 0;  // panel of the matrix where the segment starts
    for (const PackedMatrix::Segment& segment : w.segments()) {
      const int panels = segment.panels();
      const int panel_begin = std::max<int>(begin - first, 0);
      const int panel_end = std::min<int>(end - first, panels);
      first += panels;
      if (panel_begin >= panel_end) continue;
      table_->gemm({&segment, w.cols(), w.slice_cols(), panel_begin, panel_end,
                    x, x_stride, rows, y, y_stride});
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
                    const int32_t* kv_head_of, float scale, int window,
                    const TokenBatch& batch, const PagedKv& kv, float* out,
                    ptrdiff_t out_stride) {
  CHECK_LE(kv.head_dim, kMaxHeadDim);
  ComputeAttention(*table_, *pool_,
                   {q, q_stride, heads, kv_head_of, scale, window, &batch, &kv,
                    out, out_stride});
}

void Ops::SiluMul(const float* gate_up, ptrdiff_t stride, int rows, int dim,
                  float* y, ptrdiff_t y_stride) {
  pool_->For(rows, RowsPerRange(dim), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      const float* gate = gate_up + row * stride;
      table_->silu_mul(gate, gate + dim, dim, y + row * y_stride);
    }
  });
}

void Ops::Add(float* x, ptrdiff_t x_stride, const float* y, ptrdiff_t y_stride,
              int rows, int dim) {
  pool_->For(rows, RowsPerRange(dim), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* sum = x + row * x_stride;
      const float* term = y + row * y_stride;
      for (int i = 0; i < dim; ++i) sum[i] += term[i];
    }
  });
}

}  // namespace lockstep::kernels
