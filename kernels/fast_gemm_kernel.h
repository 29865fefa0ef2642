#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/packed_format.h"
#include "kernels/quantized_rows.h"
#include "kernels/quantized_weights.h"

// The product of quantized rows for a vector type V (integers_*.h). Per block
// of 32 columns an exact integer sum, which is scaled and added to the fp32 sum
// of its slice,
//
//   sum = fma(float(Σ w·q), scale_w·scale_x, sum), then for types that have a
//   minimum sum = fma(min_w, sum_x, sum),
//
// in order of the blocks. Q6_K scales the sums of 16 columns.
namespace lockstep::kernels {

template <class V, class W>
inline constexpr bool kIsInt16 = std::is_same_v<W, Int16Weights<V>>;

template <class V, class W>
inline constexpr RowFormat kRowFormatOf =
    kIsInt16<V, W> ? RowFormat::kInt16 : RowFormat::kInt8;

// Rows of a block of a tile; see quantized_rows.h.
template <int kRows>
struct Int8Block {
  const int8_t* q;
  const float* scale;
  const float* sum;
  const int32_t* minus_sum;
  const int32_t* minus_first;

  explicit Int8Block(const uint8_t* block)
      : q(reinterpret_cast<const int8_t*>(block)),
        scale(reinterpret_cast<const float*>(block + kQuantBlock * kRows)),
        sum(scale + kRows),
        minus_sum(reinterpret_cast<const int32_t*>(sum + kRows)),
        minus_first(minus_sum + kRows) {}

  // -Σq over the columns of a fold.
  template <class W>
  int32_t MinusSum(int row, int fold) const {
    if constexpr (W::kFoldCols == kQuantBlock) return minus_sum[row];
    return fold == 0 ? minus_first[row] : minus_sum[row] - minus_first[row];
  }
};

// One vector of each of a tile's panels, in registers.
template <class V, int kRows, int kPanels>
struct IntTile {
  typename V::Ints at[kRows][kPanels];
};
template <class V, int kRows, int kPanels>
struct FloatTile {
  typename V::Floats at[kRows][kPanels];
};

// Where a block of each panel lies.
template <int kPanels>
struct PanelBlocks {
  const uint8_t* header[kPanels];
  const uint8_t* block[kPanels];
};

// Integer sums of one fold of a block of 8-bit rows.
template <class V, class W, int kRows, int kPanels>
[[gnu::always_inline]] inline void DotFold(const PanelBlocks<kPanels>& w, int v,
                                           const Int8Block<kRows>& x, int fold,
                                           IntTile<V, kRows, kPanels>& dot) {
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    typename V::Ints start = V::SetInts(0);
    if constexpr (W::kOffset > 0) {
      start = V::template ShiftLeft<__builtin_ctz(W::kOffset)>(
          V::SetInts(x.template MinusSum<W>(r, fold)));
    }
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) dot.at[r][p] = start;
  }
  constexpr int kQuads = W::kFoldCols / 4;
#pragma GCC unroll 8
  for (int i = 0; i < kQuads; ++i) {
    const int g = fold * kQuads + i;
    typename V::Ints weights[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) weights[p] = W::Quad(w.block[p], g, v);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const int8_t* q = x.q + kQuantBlock * r + 4 * g;
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) {
        V::template DotBytes<W::kSmall>(weights[p], q, dot.at[r][p]);
      }
    }
  }
}

// Adds the scaled integer sums of a fold.
template <class V, class W, int kRows, int kPanels>
[[gnu::always_inline]] inline void AddScaled(
    const PanelBlocks<kPanels>& w, int v, int fold, const float* x_scale,
    const IntTile<V, kRows, kPanels>& dot, FloatTile<V, kRows, kPanels>& sum) {
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    const auto scale = W::Scale(w.header[p], w.block[p], fold, v);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const auto factor = V::Mul(scale, V::Set(x_scale[r]));
      sum.at[r][p] = V::Fma(V::ToFloats(dot.at[r][p]), factor, sum.at[r][p]);
    }
  }
}

// One block of 32 columns of 8-bit rows.
template <class V, class W, int kRows, int kPanels>
[[gnu::always_inline]] inline void AddInt8Block(
    const PanelBlocks<kPanels>& w, int v, const uint8_t* rows,
    FloatTile<V, kRows, kPanels>& sum) {
  const Int8Block<kRows> x(rows);
#pragma GCC unroll 2
  for (int fold = 0; fold < kQuantBlock / W::kFoldCols; ++fold) {
    IntTile<V, kRows, kPanels> dot;
    DotFold<V, W, kRows, kPanels>(w, v, x, fold, dot);
    AddScaled<V, W, kRows, kPanels>(w, v, fold, x.scale, dot, sum);
  }
  if constexpr (W::kHasMin) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      const auto min = W::Min(w.header[p], w.block[p], v);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        sum.at[r][p] = V::Fma(min, V::Set(x.sum[r]), sum.at[r][p]);
      }
    }
  }
}

// One block of 32 columns of 16-bit rows.
template <class V, class W, int kRows, int kPanels>
[[gnu::always_inline]] inline void AddInt16Block(
    const PanelBlocks<kPanels>& w, int v, const uint8_t* rows,
    FloatTile<V, kRows, kPanels>& sum) {
  const auto* q = reinterpret_cast<const int16_t*>(rows);
  IntTile<V, kRows, kPanels> dot;
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) dot.at[r][p] = V::SetInts(0);
  }
#pragma GCC unroll 16
  for (int g = 0; g < kQuantBlock / 2; ++g) {
    typename V::Ints weights[kPanels];
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) weights[p] = W::Pair(w.block[p], g, v);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) {
        V::DotWords(weights[p], q + kQuantBlock * r + 2 * g, dot.at[r][p]);
      }
    }
  }
  const auto* scale =
      reinterpret_cast<const float*>(rows + 2 * kQuantBlock * kRows);
  AddScaled<V, W, kRows, kPanels>(w, v, /*fold=*/0, scale, dot, sum);
}

// How far ahead of the product weights are fetched.
inline constexpr int kFastPrefetchBytes = 2048;

// Where few rows meet each weight, memory is the limit.
template <class V, class W, int kRows, int kPanels>
[[gnu::always_inline]] inline void PrefetchBlock(
    const PanelBlocks<kPanels>& w) {
  if constexpr (kRows <= V::kStreamRows) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 16
      for (int line = 0; line < W::kBlockBytes; line += 64) {
        __builtin_prefetch(w.block[p] + line + kFastPrefetchBytes);
      }
    }
  }
}

// Sums of vector v of kPanels panels over the blocks of one slice for a tile of
// kRows rows, all in registers. sums [kRows, kPanels·16].
template <class V, class W, int kRows, int kPanels>
[[gnu::noinline]] void MultiplyQuantized(const uint8_t* const (&panel)[kPanels],
                                         int v, int blocks, const uint8_t* rows,
                                         float* sums) {
  constexpr int kRowBytes = RowBlockBytes(kRowFormatOf<V, W>) * kRows;
  FloatTile<V, kRows, kPanels> sum;
  PanelBlocks<kPanels> w;
#pragma GCC unroll 8
  for (int p = 0; p < kPanels; ++p) {
    w.block[p] = panel[p];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) sum.at[r][p] = V::Zero();
  }
  for (int done = 0; done < blocks; done += W::kBlocks) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      w.header[p] = w.block[p];
      w.block[p] += W::kHeaderBytes;
    }
    for (int i = 0; i < W::kBlocks; ++i) {
      PrefetchBlock<V, W, kRows, kPanels>(w);
      if constexpr (kIsInt16<V, W>) {
        AddInt16Block<V, W, kRows, kPanels>(w, v, rows, sum);
      } else {
        AddInt8Block<V, W, kRows, kPanels>(w, v, rows, sum);
      }
      rows += kRowBytes;
#pragma GCC unroll 8
      for (int p = 0; p < kPanels; ++p) w.block[p] += W::kBlockBytes;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int p = 0; p < kPanels; ++p) {
      V::Store(sums + (r * kPanels + p) * kPanelRows + v * V::kWidth,
               sum.at[r][p]);
    }
  }
}

}  // namespace lockstep::kernels
