#pragma once

#include <cstdint>

#include "kernels/product/quantized_rows.h"
#include "kernels/product/quantized_weights.h"
#include "kernels/weights/packed_format.h"

// The product of quantized rows for a vector type V (integers_*.h). Per block
// of 32 columns an exact integer sum, which is scaled and added to the fp32 sum
// of its slice,
//
//   sum = fma(float(Σ w·q), scale_w·scale_x, sum), then for types that have a
//   minimum sum = fma(min_w, sum_x, sum),
//
// in order of the blocks. Q2_K and Q6_K do either for 16 columns at a time.
namespace lockstep::kernels {

// Rows of a block of a tile; see quantized_rows.h.
template <int kRows>
struct SplitBlock {
  const int8_t* high;
  const int8_t* low;
  const float* scale;
  const float* sum;
  const int32_t* minus_sum;
  const int32_t* minus_first;

  explicit SplitBlock(const uint8_t* block)
      : high(reinterpret_cast<const int8_t*>(block)),
        low(high + kQuantBlock * kRows),
        scale(reinterpret_cast<const float*>(low + kQuantBlock * kRows)),
        sum(scale + kRows),
        minus_sum(reinterpret_cast<const int32_t*>(sum + kRows)),
        minus_first(minus_sum + kRows) {}

  // -Σq over the columns of a fold.
  template <class W>
  int32_t MinusSum(int row, int fold) const {
    if constexpr (W::kFoldCols == kQuantBlock) return minus_sum[row];
    return fold == 0 ? minus_first[row] : minus_sum[row] - minus_first[row];
  }
  // scale·Σq over them.
  template <class W>
  float Sum(int row, int fold) const {
    if constexpr (W::kFoldCols == kQuantBlock) return sum[row];
    return scale[row] * static_cast<float>(-MinusSum<W>(row, fold));
  }
};

// A vector of sums for each row of a tile, in registers.
template <class V, int kRows>
struct IntSums {
  typename V::Ints at[kRows];
};
template <class V, int kRows>
struct FloatSums {
  typename V::Floats at[kRows];
};

// Where a block of a panel lies.
struct PanelBlock {
  const uint8_t* header;  // of its group
  const uint8_t* block;
};

// Integer sums of one fold of a block of split rows: Σ w·high·128 + Σ w·low, at
// most 64·255·64·128 + 128·8191·32 < 2^31.
template <class V, class W, int kRows>
[[gnu::always_inline]] inline IntSums<V, kRows> DotFold(
    const PanelBlock& w, int v, const SplitBlock<kRows>& x, int fold) {
  IntSums<V, kRows> high, low;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    high.at[r] = low.at[r] = V::SetInts(0);
    if constexpr (W::kOffset > 0) {
      low.at[r] = V::template ShiftLeft<__builtin_ctz(W::kOffset)>(
          V::SetInts(x.template MinusSum<W>(r, fold)));
    }
  }
  constexpr int kQuads = W::kFoldCols / 4;
#pragma GCC unroll 8
  for (int i = 0; i < kQuads; ++i) {
    const int g = fold * kQuads + i;
    const auto weights = W::Quad(w.block, g, v);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const int at = kQuantBlock * r + 4 * g;
      V::template DotBytes<W::kSmall>(weights, x.high + at, high.at[r]);
      V::template DotBytes<W::kSmall>(weights, x.low + at, low.at[r]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    low.at[r] =
        V::AddInts(V::template ShiftLeft<kLowBits>(high.at[r]), low.at[r]);
  }
  return low;
}

// The same of a block of 16-bit rows.
template <class V, class W, int kRows>
[[gnu::always_inline]] inline IntSums<V, kRows> DotBlock(const PanelBlock& w,
                                                         int v,
                                                         const int16_t* q) {
  IntSums<V, kRows> dot;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) dot.at[r] = V::SetInts(0);
#pragma GCC unroll 16
  for (int g = 0; g < kQuantBlock / 2; ++g) {
    const auto weights = W::Pair(w.block, g, v);
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      V::DotWords(weights, q + kQuantBlock * r + 2 * g, dot.at[r]);
    }
  }
  return dot;
}

// Adds the scaled integer sums of a fold.
template <class V, class W, int kRows>
[[gnu::always_inline]] inline void AddScaled(const PanelBlock& w, int v,
                                             int fold, const float* x_scale,
                                             const IntSums<V, kRows>& dot,
                                             FloatSums<V, kRows>& sum) {
  const auto scale = W::Scale(w.header, w.block, fold, v);
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    const auto factor = V::Mul(scale, V::Set(x_scale[r]));
    sum.at[r] = V::Fma(V::ToFloats(dot.at[r]), factor, sum.at[r]);
  }
}

// One block of 32 columns of split rows.
template <class V, class W, int kRows>
[[gnu::always_inline]] inline void AddSplitBlock(const PanelBlock& w, int v,
                                                 const uint8_t* rows,
                                                 FloatSums<V, kRows>& sum) {
  const SplitBlock<kRows> x(rows);
#pragma GCC unroll 2
  for (int fold = 0; fold < kQuantBlock / W::kFoldCols; ++fold) {
    const auto dot = DotFold<V, W, kRows>(w, v, x, fold);
    AddScaled<V, W, kRows>(w, v, fold, x.scale, dot, sum);
  }
  if constexpr (W::kHasMin) {
#pragma GCC unroll 2
    for (int fold = 0; fold < kQuantBlock / W::kFoldCols; ++fold) {
      const auto min = W::Min(w.header, w.block, fold, v);
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const auto sum_x = V::Set(x.template Sum<W>(r, fold));
        sum.at[r] = V::Fma(min, sum_x, sum.at[r]);
      }
    }
  }
}

// One block of 32 columns of 16-bit rows.
template <class V, class W, int kRows>
[[gnu::always_inline]] inline void AddInt16Block(const PanelBlock& w, int v,
                                                 const uint8_t* rows,
                                                 FloatSums<V, kRows>& sum) {
  const auto dot =
      DotBlock<V, W, kRows>(w, v, reinterpret_cast<const int16_t*>(rows));
  const auto* scale =
      reinterpret_cast<const float*>(rows + 2 * kQuantBlock * kRows);
  AddScaled<V, W, kRows>(w, v, /*fold=*/0, scale, dot, sum);
}

// How far ahead of the product weights are fetched; a panel's neighbour, which
// is next, follows it.
inline constexpr int kFastPrefetchBytes = 2048;

// Sums of vector v of a panel over the blocks of one slice, for a tile of kRows
// rows; all in registers. sums [kRows, 16].
template <class V, class W, int kRows>
[[gnu::noinline]] void MultiplyQuantized(const uint8_t* panel, int v,
                                         int blocks, const uint8_t* rows,
                                         float* sums) {
  constexpr RowFormat kRowFormat = RowFormatFor(W::kType);
  constexpr int kRowBytes = RowBlockBytes(kRowFormat) * kRows;
  constexpr PackedFormat kFormat = FormatOfPacked(W::kType);
  constexpr int kBlocks = kFormat.group_cols / kQuantBlock;
  constexpr int kBlockBytes = kFormat.block_bytes();
  FloatSums<V, kRows> sum;
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) sum.at[r] = V::Zero();
  PanelBlock w = {panel, panel};
  for (int done = 0; done < blocks; done += kBlocks) {
    w.header = w.block;
    w.block += kFormat.header_bytes;
    for (int i = 0; i < kBlocks; ++i) {
#pragma GCC unroll 16
      for (int line = 0; line < kBlockBytes; line += 64) {
        __builtin_prefetch(w.block + line + kFastPrefetchBytes);
      }
      if constexpr (kRowFormat == RowFormat::kInt16) {
        AddInt16Block<V, W, kRows>(w, v, rows, sum);
      } else {
        AddSplitBlock<V, W, kRows>(w, v, rows, sum);
      }
      rows += kRowBytes;
      w.block += kBlockBytes;
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
    V::Store(sums + r * kPanelRows + v * V::kWidth, sum.at[r]);
  }
}

}  // namespace lockstep::kernels
