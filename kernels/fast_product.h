#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "kernels/fast_kernel_args.h"
#include "kernels/packed_matrix.h"
#include "kernels/quantized_rows.h"
#include "kernels/thread_pool.h"

namespace lockstep::kernels {

struct FastKernels;  // kernels/kernel_table.h

// Products with matrices packed for Arithmetic::kFast: the rows of X are
// quantized into a buffer, then blocks of rows, as many as the second-level
// cache holds, meet the panels of the matrix.
//
//   FastProduct product(&kernels, &pool);
//   product.Reserve(/*rows=*/512, /*cols=*/1536);
//   product.Multiply(w, x, x_stride, rows, y, y_stride, {});
//
// One thread calls at a time. Allocates only for products larger than any
// before and than what was reserved.
class FastProduct {
 public:
  // Both must outlive this.
  FastProduct(const FastKernels* kernels, ThreadPool* pool);

  // For products of at most so many rows, of at most so many columns.
  void Reserve(int rows, int cols);

  // x [rows, w.cols()]; y [rows, w.rows()], of a gated product half as many
  // columns. REQUIRES: x and y do not overlap.
  void Multiply(const PackedMatrix& w, const float* x, ptrdiff_t x_stride,
                int rows, float* y, ptrdiff_t y_stride,
                const Epilogue& epilogue);

 private:
  struct FreeBytes {
    void operator()(uint8_t* bytes) const;
  };

  void Grow(size_t bytes);
  // One format of quantized rows and the segments that take it.
  void MultiplyFormat(const PackedMatrix& w, RowFormat format, const float* x,
                      ptrdiff_t x_stride, const RowTiles& tiles, float* y,
                      ptrdiff_t y_stride, const Epilogue& epilogue);
  void Quantize(const PackedMatrix& w, RowFormat format, const float* x,
                ptrdiff_t x_stride, const RowTiles& tiles);

  const FastKernels* kernels_;
  ThreadPool* pool_;
  size_t capacity_ = 0;                         // bytes
  std::unique_ptr<uint8_t[], FreeBytes> rows_;  // quantized_rows.h
};

}  // namespace lockstep::kernels
