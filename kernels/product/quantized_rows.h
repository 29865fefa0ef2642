#pragma once

#include <cstdint>

#include "kernels/weights/packed_format.h"

namespace lockstep::kernels {

// How the rows of X lie in memory for the fast product: quantized in blocks of
// 32 columns, counted from the start of each slice; a slice's last block may
// hold fewer and is padded with zeros. Rows come in tiles, as many as a kernel
// keeps in registers; a tile is its blocks one after another, and a block of a
// tile of R rows is
//
//   Int8, 48·R bytes    int8 q[R][32]; float scale[R]; float sum[R];
//                       int32 minus_sum[R]; int32 minus_first[R]
//   Int16, 68·R bytes   int16 q[R][32]; float scale[R]
//
// with, for a row's values x of one block and `limit` = 127 or 8191,
//
//   scale = max|x| / limit,   q = round(x·(limit / max|x|)), to nearest even
//   sum = scale·Σq, minus_sum = -Σq, minus_first = -Σq of the first 16
//
// all of it in fp32. Where max|x| < kLeastMax everything is 0, where some x is
// infinite or NaN q is 0 and scale and sum are NaN.
inline constexpr int kQuantBlock = 32;
inline constexpr float kLeastMax = 1e-30f;

enum class RowFormat : uint8_t { kInt8, kInt16 };

// What rows meet weights of a type in.
inline constexpr RowFormat RowFormatFor(PackedType type) {
  return type == PackedType::kInt16 ? RowFormat::kInt16 : RowFormat::kInt8;
}

inline constexpr float QuantLimit(RowFormat format) {
  return format == RowFormat::kInt8 ? 127 : 8191;
}

inline constexpr int RowBlockBytes(RowFormat format) {
  return format == RowFormat::kInt8 ? 48 : 68;
}

// Blocks of a row of `cols` columns in slices of `slice_cols`.
inline constexpr int BlocksPerRow(int cols, int slice_cols) {
  return cols / slice_cols * ((slice_cols + kQuantBlock - 1) / kQuantBlock);
}

// How `rows` rows are cut into tiles of at most `tile_rows`, evenly.
struct RowTiles {
  int rows;
  int tile_rows;

  int count() const { return (rows + tile_rows - 1) / tile_rows; }
  // The first row of a tile; begin(count()) is `rows`.
  int begin(int tile) const {
    return static_cast<int>(static_cast<int64_t>(rows) * tile / count());
  }
};

}  // namespace lockstep::kernels
