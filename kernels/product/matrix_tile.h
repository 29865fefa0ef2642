#pragma once

#include <cstddef>

namespace lockstep::kernels {

// C[rows, 16·panels] = or += X[rows, k]·W in fp32, every element one chain of
// fused multiply-adds over k in order. Panel p of W is 16 columns wide: its row
// for k is w[p] + k·k_stride.
struct MatrixTile {
  const float* x;
  ptrdiff_t x_stride;
  int rows;
  const float* const* w;  // [panels]
  ptrdiff_t k_stride;
  int panels;
  int k;
  float* c;
  ptrdiff_t c_stride;
  bool accumulate;  // the chains go on from what C holds
};

// The part of a tile that stays in registers: kRows·kPanels·V::kVectors sums.
template <class V, int kRows, int kPanels>
[[gnu::noinline]] void MultiplyRegisterTile(const MatrixTile& t) {
  typename V::Floats sum[kRows][kPanels][V::kVectors];
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
      for (int v = 0; v < V::kVectors; ++v) {
        sum[r][p][v] =
            t.accumulate
                ? V::Load(t.c + r * t.c_stride + 16 * p + V::kWidth * v)
                : V::Zero();
      }
    }
  }
  const float* w[kPanels];
  for (int p = 0; p < kPanels; ++p) w[p] = t.w[p];
  const float* x = t.x;
  const ptrdiff_t x_stride = t.x_stride;
  const ptrdiff_t k_stride = t.k_stride;
  ptrdiff_t at = 0;
  for (const float* end = x + t.k; x != end; ++x, at += k_stride) {
    typename V::Floats weight[kPanels][V::kVectors];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
      for (int v = 0; v < V::kVectors; ++v) {
        weight[p][v] = V::Load(w[p] + at + V::kWidth * v);
      }
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const typename V::Floats value = V::Set(x[r * x_stride]);
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
        for (int v = 0; v < V::kVectors; ++v) {
          sum[r][p][v] = V::Fma(value, weight[p][v], sum[r][p][v]);
        }
      }
    }
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
      for (int v = 0; v < V::kVectors; ++v) {
        V::Store(t.c + r * t.c_stride + 16 * p + V::kWidth * v, sum[r][p][v]);
      }
    }
  }
}

// The register tile of kRows rows that is at most `panels` wide; returns its
// width.
template <class V, int kRows, int kPanels = V::TilePanels(kRows)>
int MultiplyWidest(const MatrixTile& t) {
  if constexpr (kPanels > 1) {
    if (t.panels < kPanels) return MultiplyWidest<V, kRows, kPanels / 2>(t);
  }
  MultiplyRegisterTile<V, kRows, kPanels>(t);
  return kPanels;
}

// Finds the instance for `rows` rows, 1 to kRows.
template <class V, int kRows = V::kMaxTileRows>
int MultiplyRows(const MatrixTile& t) {
  if constexpr (kRows > 1) {
    if (t.rows < kRows) return MultiplyRows<V, kRows - 1>(t);
  }
  return MultiplyWidest<V, kRows>(t);
}

// Any number of rows and panels: rows are cut into even tiles.
template <class V>
void Multiply(const MatrixTile& all) {
  const int tiles = (all.rows + V::kMaxTileRows - 1) / V::kMaxTileRows;
  MatrixTile t = all;
  for (int tile = 0, row = 0; tile < tiles; ++tile, row += t.rows) {
    t.rows = (all.rows - row) / (tiles - tile);
    t.x = all.x + row * all.x_stride;
    for (int panel = 0; panel < all.panels;) {
      t.panels = all.panels - panel;
      t.w = all.w + panel;
      t.c = all.c + row * all.c_stride + 16 * panel;
      panel += MultiplyRows<V>(t);
    }
  }
}

}  // namespace lockstep::kernels
