#pragma once

#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/product/fast_kernel_args.h"
#include "kernels/product/quantized_rows.h"
#include "kernels/row_group.h"
#include "kernels/simd/gate.h"
#include "kernels/threads/thread_pool.h"
#include "kernels/weights/packed_matrix.h"

namespace lockstep::kernels {

struct FastKernels;  // kernels/isa/kernel_table.h

// Products with matrices packed for Arithmetic::kFast: the rows of X are
// quantized into a buffer, then blocks of rows, as many as the second-level
// cache holds, meet the panels of the matrix.
//
//   FastProduct product(&kernels, &pool);
//   product.Reserve(/*rows=*/512, /*cols=*/1536);
//   product.Multiply({{&w, 0, rows}}, x, x_stride, y, y_stride, nullptr);
//
// One thread calls at a time. Allocates only for products larger than any
// before and than what was reserved.
class FastProduct {
 public:
  // A part of a product: panels of a segment, and tiles of rows they meet.
  struct Piece {
    int segment;
    int panel_begin;
    int panel_end;
    int tile_begin;
    int tile_end;
  };

  // Both must outlive this.
  FastProduct(const FastKernels* kernels, ThreadPool* pool);

  // For products of at most so many rows, of at most so many columns.
  void Reserve(int rows, int cols);

  // y = x·wᵀ + bias for the rows of each group; x [rows, w.cols()], y [rows,
  // w.rows()], bias [w.rows()] or null.
  void Multiply(absl::Span<const RowGroup> groups, const float* x,
                ptrdiff_t x_stride, float* y, ptrdiff_t y_stride,
                const float* bias);

  // Whether MultiplyGated takes the matrices: gate and up are a segment each,
  // of one type.
  static bool AreGated(absl::Span<const RowGroup> groups);

  // y = gate(x·w_gateᵀ)·(x·w_upᵀ), y [rows, w.rows() / 2].
  // REQUIRES: AreGated(groups).
  void MultiplyGated(absl::Span<const RowGroup> groups, Gate gate,
                     const float* x, ptrdiff_t x_stride, float* y,
                     ptrdiff_t y_stride);

 private:
  struct FreeBytes {
    void operator()(uint8_t* bytes) const;
  };

  void Grow(size_t bytes);
  RowTiles Tiles(const RowGroup& group) const;
  // Of a format, without y; for the plain product.
  FastGemmArgs Args(const RowGroup& group, RowFormat format,
                    const Piece& piece) const;
  void Quantize(absl::Span<const RowGroup> groups, RowFormat format,
                const float* x, ptrdiff_t x_stride);
  // fn(group, piece) for all pieces of the first num_segments segments,
  // on all threads.
  template <typename Function>
  void ForEachPiece(absl::Span<const RowGroup> groups, RowFormat format,
                    size_t num_segments, const Function& fn);

  const FastKernels* kernels_;
  ThreadPool* pool_;
  size_t capacity_ = 0;                         // bytes
  std::unique_ptr<uint8_t[], FreeBytes> rows_;  // quantized_rows.h
};

}  // namespace lockstep::kernels
