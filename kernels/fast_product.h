#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/product/fast_kernel_args.h"
#include "kernels/product/quantized_rows.h"
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
//   product.Multiply(w, x, x_stride, rows, y, y_stride, /*bias=*/nullptr);
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

  // y = x·wᵀ + bias; x [rows, w.cols()], y [rows, w.rows()], bias [w.rows()] or
  // null.
  void Multiply(const PackedMatrix& w, const float* x, ptrdiff_t x_stride,
                int rows, float* y, ptrdiff_t y_stride, const float* bias);

  // Whether MultiplyGated takes a matrix: gate and up are a segment each, of
  // one type.
  static bool IsGated(const PackedMatrix& gate_up);

  // y = silu(x·gateᵀ)·(x·upᵀ), y [rows, gate_up.rows() / 2].
  // REQUIRES: IsGated(gate_up).
  void MultiplyGated(const PackedMatrix& gate_up, const float* x,
                     ptrdiff_t x_stride, int rows, float* y,
                     ptrdiff_t y_stride);

 private:
  struct FreeBytes {
    void operator()(uint8_t* bytes) const;
  };

  void Grow(size_t bytes);
  // Without y; for the plain product.
  FastGemmArgs Args(const PackedMatrix& w, const Piece& piece,
                    const RowTiles& tiles) const;
  void Quantize(const PackedMatrix& w, RowFormat format, const float* x,
                ptrdiff_t x_stride, const RowTiles& tiles);

  const FastKernels* kernels_;
  ThreadPool* pool_;
  size_t capacity_ = 0;                         // bytes
  std::unique_ptr<uint8_t[], FreeBytes> rows_;  // quantized_rows.h
};

}  // namespace lockstep::kernels
