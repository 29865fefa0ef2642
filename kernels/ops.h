#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attention_rule.h"
#include "kernels/attention/paged_kv.h"
#include "kernels/attention/token_batch.h"
#include "kernels/expert_choice.h"
#include "kernels/fast_product.h"
#include "kernels/rotary.h"
#include "kernels/row_group.h"
#include "kernels/simd/gate.h"
#include "kernels/threads/thread_pool.h"
#include "kernels/weights/packed_matrix.h"

namespace lockstep::kernels {

struct KernelTable;  // kernels/isa/kernel_table.h: one ISA's function pointers

// The operations of a decoder on CPU, each over all threads of a pool. Every
// result is a fixed function of its own row's inputs: the number of rows, of
// threads, and the instruction set change no bit.
//
//   auto ops = Ops::Create("auto", &pool);
//   ops->RmsNorm(x, hidden, rows, hidden, weight, eps, y, hidden);
//
// Shapes are the caller's to get right: a few compares per call catch a
// mistake, with a crash. One thread calls at a time. Strides are in floats.
// Nothing is allocated but by a fast product larger than what was reserved and
// than any before; scratch is on the workers' stacks (up to 2 MiB).
class Ops {
 public:
  // isa: "auto", "avx512_vnni", "avx2" or "reference". INVALID_ARGUMENT names
  // the flag --cpu_isa when this processor lacks it. `pool` must outlive the
  // result.
  static absl::StatusOr<Ops> Create(absl::string_view isa, ThreadPool* pool);

  const char* isa() const;  // never "auto"
  ThreadPool& pool() { return *pool_; }

  // Makes room for fast products of at most so many rows and columns.
  void ReserveProducts(int rows, int cols) { fast_.Reserve(rows, cols); }

  // y[i, j] = Σ_k x[i, k]·w[j, k] + bias[j] for all i < rows, in w's
  // arithmetic; see PackedMatrix for the order of the sum. x [rows, w.cols],
  // y [rows, w.rows], bias [w.rows] or null.
  void Gemm(const PackedMatrix& w, const float* x, ptrdiff_t x_stride, int rows,
            float* y, ptrdiff_t y_stride, const float* bias = nullptr);

  // y = gate(x·w_gateᵀ)·(x·w_upᵀ), y [rows, dim], where gate_up has dim rows of
  // w_gate, then as many of w_up. scratch: [rows, 2·dim] for the products,
  // where they can not become y at once.
  void GatedGemm(const PackedMatrix& gate_up, Gate gate, const float* x,
                 ptrdiff_t x_stride, int rows, float* scratch, float* y,
                 ptrdiff_t y_stride);

  // The same for several matrices, each with rows of its own.
  void GroupedGemm(absl::Span<const RowGroup> groups, const float* x,
                   ptrdiff_t x_stride, float* y, ptrdiff_t y_stride);
  void GroupedGatedGemm(absl::Span<const RowGroup> gate_up, Gate gate,
                        const float* x, ptrdiff_t x_stride, float* scratch,
                        float* y, ptrdiff_t y_stride);

  // y = x / sqrt(mean(x²) + eps)·weight, row by row; x and y [rows, dim] may be
  // the same.
  void RmsNorm(const float* x, ptrdiff_t x_stride, int rows, int dim,
               const float* weight, float eps, float* y, ptrdiff_t y_stride);

  // For each token and each of `heads` vectors x[token, head] of head_dim:
  // RMS norm with `norm_weight` [head_dim] unless it is null, then rotation of
  // the first rotary_dim dimensions by the token's position. cos, sin:
  // [max_position, rotary_dim / 2]. In place.
  void NormRope(float* x, ptrdiff_t token_stride, int heads, int head_dim,
                const float* norm_weight, float eps, RopeStyle style,
                int rotary_dim, const float* cos, const float* sin,
                const TokenBatch& batch);

  // Writes each token's keys and values, k and v [num_tokens, kv_heads,
  // head_dim], to its page and slot.
  void StoreKv(const float* k, ptrdiff_t k_stride, const float* v,
               ptrdiff_t v_stride, const TokenBatch& batch, const PagedKv& kv);

  // out[t, h] = softmax(scale·q[t, h]·Kᵀ)·V over positions 0..positions[t] of
  // t's own sequence, as `rule` says; head h uses key-value head kv_head_of[h].
  // Positions are visited in blocks of 64 and chunks of 512, both counted from
  // 0, see attend_args.h. q, out [num_tokens, heads, head_dim]; head_dim at
  // most 512.
  void Attention(const float* q, ptrdiff_t q_stride, int heads,
                 const int32_t* kv_head_of, const AttentionRule& rule,
                 const TokenBatch& batch, const PagedKv& kv, float* out,
                 ptrdiff_t out_stride);

  // y[i, j] = gate(x)·up; gate_up [rows, 2·dim] holds x, then up.
  void GatedMul(const float* gate_up, Gate gate, ptrdiff_t stride, int rows,
                int dim, float* y, ptrdiff_t y_stride);

  // x = cap·tanh(x / cap), [rows, dim].
  void SoftCap(float* x, ptrdiff_t stride, int rows, int dim, float cap);

  // x = factor·x, [rows, dim].
  void Scale(float* x, ptrdiff_t stride, int rows, int dim, float factor);

  // Σx² of each of `heads` vectors x[token, head] of head_dim, out [tokens,
  // heads].
  void HeadSquares(const float* x, ptrdiff_t token_stride, int tokens,
                   int heads, int head_dim, float* out, ptrdiff_t out_stride);

  // A token's experts out of num_experts, as kernels::ChooseExperts: logits
  // [tokens, num_experts], which may become scores; bias [num_experts] or null;
  // experts and weights [tokens, rule.count], best first.
  void ChooseExperts(float* logits, int tokens, int num_experts,
                     const ExpertRule& rule, const float* bias,
                     int32_t* experts, float* weights);

  // x = 1 / (1 + e^-x).
  void Sigmoid(float* x, int count);

  // x += scale·y, [rows, dim].
  void Add(float* x, ptrdiff_t x_stride, const float* y, ptrdiff_t y_stride,
           int rows, int dim, float scale = 1);

 private:
  Ops(const KernelTable* table, ThreadPool* pool);

  // What Gemm and GroupedGemm do, once the groups are checked; bias may be
  // null.
  void Multiply(absl::Span<const RowGroup> groups, const float* x,
                ptrdiff_t x_stride, float* y, ptrdiff_t y_stride,
                const float* bias);
  void StrictGemm(absl::Span<const RowGroup> groups, const float* x,
                  ptrdiff_t x_stride, float* y, ptrdiff_t y_stride);

  const KernelTable* table_;
  ThreadPool* pool_;
  FastProduct fast_;
};

}  // namespace lockstep::kernels
