#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/weights/dtype.h"

namespace lockstep::cuda {

// A weight matrix [rows, cols] as files store it, in device memory.
struct StoredMatrix {
  kernels::DType type = kernels::DType::kF32;
  // rows of RowBytes(type, cols) bytes; a multiple of its floats' size, else of
  // 2.
  const uint8_t* data = nullptr;
  int rows = 0;
  int cols = 0;
};

// y[i, j] = Σ_k x[i, k]·w[j, k] + bias[j]. X and Y are float or BFloat16, but
// Y is no BFloat16 where X is float.
template <typename X, typename Y>
struct ProductArgs {
  StoredMatrix w;
  const float* bias;  // [w.rows], or null: none
  const X* x;         // [count, w.cols]
  int count;
  Y* y;  // [count, w.rows], rows y_stride elements apart
  ptrdiff_t y_stride;
};

// Rows [begin, begin + count) of y, which are of one of several matrices; a
// tile may have none.
struct RowTile {
  int32_t matrix;
  int32_t begin;
  int32_t count;
};

// Tiles of rows that are multiplied by matrices of their own, all of the size
// and type of args.w, each right below the one before. args.count and args.bias
// have no part in it.
struct ProductGroups {
  const RowTile* tiles = nullptr;  // [num_tiles] in device memory
  int num_tiles = 0;
  int tile_rows = 0;                // at most kMostTileRows
  const int32_t* x_rows = nullptr;  // row of x that a row is; null: the same

  // Tile `i` of a kernel whose blocks have `size` rows each; without groups
  // these are of `count` rows.
#ifdef __CUDACC__
  __device__
#endif
      RowTile
      Tile(int i, int size, int count) const {
    if (tiles != nullptr) return tiles[i];
    const int begin = i * size, left = count - begin;
    return {0, begin, left < size ? left : size};
  }

  // Of x.
#ifdef __CUDACC__
  __device__
#endif
      size_t
      XRow(int row) const {
    return x_rows == nullptr ? row : x_rows[row];
  }
};

inline constexpr int kMostTileRows = 32;
// Of tiles for few rows a matrix.
inline constexpr int kFewTileRows = 8;

}  // namespace lockstep::cuda
