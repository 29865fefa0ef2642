#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/weights/packed_format.h"

namespace lockstep::kernels {

// How the rows of X lie in memory for the fast product: quantized in blocks of
// 32 columns, counted from the start of each slice; a slice's last block may
// hold fewer and is padded with zeros. Rows come in tiles, as many as a kernel
// keeps in registers; a tile is its blocks one after another, and a block of a
// tile of R rows is
//
//   Split, 80·R bytes   int8 high[R][32]; int8 low[R][32]; float scale[R];
//                       float sum[R]; int32 minus_sum[R]; int32 minus_first[R]
//   Int16, 68·R bytes   int16 q[R][32]; float scale[R]
//
// with, for a row's values x of one block,
//
//   scale = max|x| / 8191,   q = round(x·(8191 / max|x|)), to nearest even
//   q = 128·high + low, -64 <= low < 64: products of bytes take both in turn
//   sum = scale·Σq, minus_sum = -Σq, minus_first = -Σq of the first 16
//
// all of it in fp32. Where max|x| < kLeastMax everything is 0, where some x is
// infinite or NaN q is 0 and scale and sum are NaN.
inline constexpr int kQuantBlock = 32;
inline constexpr float kLeastMax = 1e-30f;

enum class RowFormat : uint8_t { kSplit, kInt16 };

// What rows meet weights of a type in.
inline constexpr RowFormat RowFormatFor(PackedType type) {
  return type == PackedType::kInt16 ? RowFormat::kInt16 : RowFormat::kSplit;
}

inline constexpr float kQuantLimit = 8191;
inline constexpr int kLowBits = 7;  // of a split integer

inline constexpr int RowBlockBytes(RowFormat format) {
  return format == RowFormat::kSplit ? 80 : 68;
}

// Of the larger format.
inline constexpr int kMostRowBlockBytes = std::max(
    RowBlockBytes(RowFormat::kSplit), RowBlockBytes(RowFormat::kInt16));

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
