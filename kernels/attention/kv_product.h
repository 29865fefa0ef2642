#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::kernels {

// A binary16, to tell it from a bfloat16.
struct Half {
  uint16_t bits;
};

// Keys and values as stored; int8_t without its scale.
template <class V>
typename V::Floats LoadElements(const float* p) {
  return V::Load(p);
}
template <class V>
typename V::Floats LoadElements(const uint16_t* p) {
  return V::LoadBFloat16(reinterpret_cast<const uint8_t*>(p));
}
template <class V>
typename V::Floats LoadElements(const Half* p) {
  return V::LoadHalf(reinterpret_cast<const uint8_t*>(p));
}
template <class V>
typename V::Floats LoadElements(const int8_t* p) {
  return V::LoadInt8(reinterpret_cast<const uint8_t*>(p));
}

// C[rows, 16·panels] = or += X[rows, k]·W, every element one chain of fused
// multiply-adds over k in order. W are keys or values, elements of type E, in
// runs of 16 positions that lie anywhere; a panel is 16 columns wide.
//
// Keys: a run is a panel, k the dimension. Values: a run is 16 of k, which is
// the position; its panels lie side by side.
template <class E>
struct KvProduct {
  const float* x;
  ptrdiff_t x_stride;
  int rows;
  int k;
  float* c;
  ptrdiff_t c_stride;
  bool accumulate;  // the chains go on from what C holds
  int panels;
  int k_per_run;           // k for keys, 16 for values
  const E* const* runs;    // [panels] for keys, [k / 16] for values
  ptrdiff_t k_stride;      // from one k to the next in a run
  int panel_run;           // 1 for keys: each panel is a run
  ptrdiff_t panel_stride;  // 16 for values: panels of a run
  // What is read next, in as many runs, fetched while this is computed: pages
  // lie anywhere, so the processor does not foresee it.
  const E* const* ahead;
  ptrdiff_t ahead_k_stride;
  ptrdiff_t ahead_panel_stride;
};

// The part of a product that stays in registers: kRows·kPanels·V::kVectors
// sums, from panel `first` on.
template <class V, class E, int kRows, int kPanels>
[[gnu::noinline]] void MultiplyKvTile(const KvProduct<E>& t, int first) {
  typename V::Floats sum[kRows][kPanels][V::kVectors];
  float* c = t.c + 16 * first;
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
      for (int v = 0; v < V::kVectors; ++v) {
        sum[r][p][v] =
            t.accumulate ? V::Load(c + r * t.c_stride + 16 * p + V::kWidth * v)
                         : V::Zero();
      }
    }
  }
  const float* x = t.x;
  const ptrdiff_t x_stride = t.x_stride;
  const ptrdiff_t k_stride = t.k_stride, ahead_k_stride = t.ahead_k_stride;
  for (int run = 0, left = t.k; left > 0; ++run, left -= t.k_per_run) {
    const E* w[kPanels];
    const E* ahead[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      const int panel = first + p;
      w[p] = t.runs[run + panel * t.panel_run] + panel * t.panel_stride;
      ahead[p] =
          t.ahead[run + panel * t.panel_run] + panel * t.ahead_panel_stride;
    }
    ptrdiff_t at = 0, ahead_at = 0;
    const float* end = x + (left < t.k_per_run ? left : t.k_per_run);
    for (; x != end; ++x, at += k_stride, ahead_at += ahead_k_stride) {
      typename V::Floats weight[kPanels][V::kVectors];
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
        __builtin_prefetch(ahead[p] + ahead_at, 0, 2);
#pragma GCC unroll 2
        for (int v = 0; v < V::kVectors; ++v) {
          weight[p][v] = LoadElements<V>(w[p] + at + V::kWidth * v);
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
  }
#pragma GCC unroll 12
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
      for (int v = 0; v < V::kVectors; ++v) {
        V::Store(c + r * t.c_stride + 16 * p + V::kWidth * v, sum[r][p][v]);
      }
    }
  }
}

// All panels of kRows rows, tile by tile, each as wide as fits.
template <class V, class E, int kRows, int kPanels = V::TilePanels(kRows)>
void MultiplyKvPanels(const KvProduct<E>& t, int first) {
  for (; t.panels - first >= kPanels; first += kPanels) {
    MultiplyKvTile<V, E, kRows, kPanels>(t, first);
  }
  if constexpr (kPanels > 1) {
    MultiplyKvPanels<V, E, kRows, kPanels / 2>(t, first);
  }
}

// Finds the instance for `rows` rows, 1 to kRows.
template <class V, class E, int kRows = V::kMaxTileRows>
void MultiplyKvRows(const KvProduct<E>& t) {
  if constexpr (kRows > 1) {
    if (t.rows < kRows) return MultiplyKvRows<V, E, kRows - 1>(t);
  }
  MultiplyKvPanels<V, E, kRows>(t, 0);
}

// Any number of rows: they are cut into even tiles.
template <class V, class E>
void MultiplyKv(const KvProduct<E>& all) {
  const int tiles = (all.rows + V::kMaxTileRows - 1) / V::kMaxTileRows;
  KvProduct<E> t = all;
  for (int tile = 0, row = 0; tile < tiles; ++tile, row += t.rows) {
    t.rows = (all.rows - row) / (tiles - tile);
    t.x = all.x + row * all.x_stride;
    t.c = all.c + row * all.c_stride;
    MultiplyKvRows<V, E>(t);
  }
}

}  // namespace lockstep::kernels
