#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/product/fast_kernel_args.h"
#include "kernels/product/quantized_rows.h"
#include "kernels/simd/lanes.h"

// Quantizes rows of X as quantized_rows.h says, for a vector type V
// (integers_*.h).
namespace lockstep::kernels {

// A block's values as integers, and what they are multiples of.
template <class V>
struct RoundedBlock {
  static constexpr int kHalves = kQuantBlock / kLanes;
  typename V::Ints q[kHalves][V::kVectors];
  float scale;
};

// `cols` values, at most 32; the others count as 0.
template <class V>
[[gnu::always_inline]] inline RoundedBlock<V> RoundBlock(const float* x,
                                                         int cols) {
  RoundedBlock<V> block;
  constexpr int kHalves = RoundedBlock<V>::kHalves;
  typename V::Floats value[kHalves][V::kVectors];
  typename V::Floats max[V::kVectors];
  bool finite = true;
  for (auto& lane : max) lane = V::Zero();
#pragma GCC unroll 2
  for (int h = 0; h < kHalves; ++h) {
#pragma GCC unroll 2
    for (int v = 0; v < V::kVectors; ++v) {
      const int begin = h * kLanes + v * V::kWidth;
      value[h][v] = cols == kQuantBlock ? V::Load(x + begin)
                                        : V::LoadFirst(x + begin, cols - begin);
      const auto absolute = V::Abs(value[h][v]);
      finite &= V::AllFinite(absolute);
      max[v] = V::Max(absolute, max[v]);
    }
  }
  const float largest = V::FoldMax(max);
  float factor = 0;
  block.scale = 0;
  if (!finite) {
    block.scale = __builtin_nanf("");
  } else if (largest >= kLeastMax) {
    block.scale = largest / kQuantLimit;
    factor = kQuantLimit / largest;
  }
#pragma GCC unroll 2
  for (int h = 0; h < kHalves; ++h) {
#pragma GCC unroll 2
    for (int v = 0; v < V::kVectors; ++v) {
      block.q[h][v] = finite ? V::Round(V::Mul(value[h][v], V::Set(factor)))
                             : V::SetInts(0);
    }
  }
  return block;
}

// Row `row` of a tile's block of `rows` rows.
template <class V>
void StoreSplitRow(const RoundedBlock<V>& block, int rows, int row,
                   uint8_t* out) {
  auto* bytes = reinterpret_cast<int8_t*>(out) + kQuantBlock * row;
#pragma GCC unroll 2
  for (int h = 0; h < RoundedBlock<V>::kHalves; ++h) {
    typename V::Ints high[V::kVectors], low[V::kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < V::kVectors; ++v) {
      const auto q = block.q[h][v];
      high[v] = V::template ShiftRightSigned<kLowBits>(
          V::AddInts(q, V::SetInts(1 << (kLowBits - 1))));
      low[v] = V::SubInts(q, V::template ShiftLeft<kLowBits>(high[v]));
    }
    V::StoreInt8(bytes + h * kLanes, high);
    V::StoreInt8(bytes + kQuantBlock * rows + h * kLanes, low);
  }
  const int32_t first = V::FoldInts(block.q[0]);
  const int32_t sum = first + V::FoldInts(block.q[1]);
  auto* floats = reinterpret_cast<float*>(out + 2 * kQuantBlock * rows);
  floats[row] = block.scale;
  floats[rows + row] = block.scale * static_cast<float>(sum);
  auto* ints = reinterpret_cast<int32_t*>(floats + 2 * rows);
  ints[row] = -sum;
  ints[rows + row] = -first;
}

template <class V>
void StoreInt16Row(const RoundedBlock<V>& block, int rows, int row,
                   uint8_t* out) {
  auto* q = reinterpret_cast<int16_t*>(out) + kQuantBlock * row;
  V::StoreInt16(q, block.q[0]);
  V::StoreInt16(q + kLanes, block.q[1]);
  reinterpret_cast<float*>(out + 2 * kQuantBlock * rows)[row] = block.scale;
}

template <class V>
void QuantizeRows(const QuantizeArgs& args) {
  const bool split = args.format == RowFormat::kSplit;
  const ptrdiff_t block_bytes =
      static_cast<ptrdiff_t>(RowBlockBytes(args.format)) * args.rows;
  for (int row = 0; row < args.rows; ++row) {
    const float* x = args.x + row * args.x_stride;
    uint8_t* out = args.out;
    for (int slice = 0; slice < args.cols; slice += args.slice_cols) {
      for (int done = 0; done < args.slice_cols; done += kQuantBlock) {
        const int left = args.slice_cols - done;
        const RoundedBlock<V> block = RoundBlock<V>(
            x + slice + done, left < kQuantBlock ? left : kQuantBlock);
        if (split) {
          StoreSplitRow<V>(block, args.rows, row, out);
        } else {
          StoreInt16Row<V>(block, args.rows, row, out);
        }
        out += block_bytes;
      }
    }
  }
}

}  // namespace lockstep::kernels
