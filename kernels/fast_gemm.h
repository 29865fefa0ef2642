#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/fast_gemm_kernel.h"
#include "kernels/fast_kernel_args.h"
#include "kernels/packed_format.h"
#include "kernels/quantized_rows.h"
#include "kernels/quantized_weights.h"
#include "kernels/slice_sums.h"
#include "kernels/vector_kernels.h"

// From ranges of panels and tiles of rows to calls of MultiplyQuantized, and
// what becomes of its sums, for a vector type V (integers_*.h).
namespace lockstep::kernels {

template <class W>
inline constexpr int kGroupBytesOf =
    W::kHeaderBytes + W::kBlocks * W::kBlockBytes;

// What a tile multiplies: `panels` panels of the segment from `panel` on and,
// of a gated product, as many of the other segment.
struct TilePlace {
  int panel;
  int panels;
  int row_begin;
  int rows;
};

// sums [rows, panels·16] to y.
template <class V>
void WriteTile(const FastGemmArgs& args, const TilePlace& place,
               const float* sums) {
  const Epilogue& epilogue = args.epilogue;
  const bool gated = epilogue.up != nullptr;
  const int column = place.panel * kPanelRows;
  const int left = args.segment->rows - column;
  const int width = place.panels * kPanelRows;
  const int stride = gated ? 2 * width : width;
  for (int r = 0; r < place.rows; ++r) {
    float* y = args.y + (place.row_begin + r) * args.y_stride + column;
    for (int i = 0; i < width; i += V::kWidth) {
      auto value = V::Load(sums + r * stride + i);
      if (epilogue.bias != nullptr) {
        value =
            V::Add(value, V::LoadFirst(epilogue.bias + column + i, left - i));
      }
      if (gated) {
        value = SiluMul<V>(value, V::Load(sums + r * stride + width + i));
      }
      V::StoreFirst(y + i, value, left - i);
    }
  }
}

// All slices of kPanels panels for the kRows rows of a tile.
template <class V, class W, int kRows, int kPanels>
void MultiplyTile(const FastGemmArgs& args, const TilePlace& place,
                  const uint8_t* rows) {
  constexpr int kFloats = kRows * kPanels * kPanelRows;
  const uint8_t* panel[kPanels];
  for (int p = 0; p < kPanels; ++p) {
    const bool is_up = p >= place.panels;
    const PackedMatrix::Segment& segment =
        is_up ? *args.epilogue.up : *args.segment;
    panel[p] = segment.data + (place.panel + (is_up ? p - place.panels : p)) *
                                  segment.panel_bytes;
  }
  const ptrdiff_t slice_bytes =
      static_cast<ptrdiff_t>(args.slice_blocks) / W::kBlocks * kGroupBytesOf<W>;
  const ptrdiff_t row_bytes = static_cast<ptrdiff_t>(args.slice_blocks) *
                              RowBlockBytes(kRowFormatOf<V, W>) * kRows;
  SliceSums<V, kFloats> sums;
  for (int slice = 0; slice < args.slices; ++slice) {
    for (int v = 0; v < V::kVectors; ++v) {
      MultiplyQuantized<V, W, kRows, kPanels>(panel, v, args.slice_blocks, rows,
                                              sums.top());
    }
    sums.Push(kFloats);
    for (const uint8_t*& p : panel) p += slice_bytes;
    rows += row_bytes;
  }
  sums.Finish(kFloats);
  WriteTile<V>(args, place, sums.result());
}

template <class V, class W, int kPanels, int kRows = V::kMaxFastRows>
void MultiplyTileRows(const FastGemmArgs& args, const TilePlace& place,
                      const uint8_t* rows) {
  if constexpr (kRows > 1) {
    if (place.rows < kRows) {
      return MultiplyTileRows<V, W, kPanels, kRows - 1>(args, place, rows);
    }
  }
  MultiplyTile<V, W, kRows, kPanels>(args, place, rows);
}

// All tiles of the range for kPanels panels at `panel`.
template <class V, class W, int kPanels>
void MultiplyPanels(const FastGemmArgs& args, int panel) {
  const ptrdiff_t row_bytes =
      static_cast<ptrdiff_t>(RowBlockBytes(kRowFormatOf<V, W>)) * args.slices *
      args.slice_blocks;
  const bool gated = args.epilogue.up != nullptr;
  for (int tile = args.tile_begin; tile < args.tile_end; ++tile) {
    const int begin = args.tiles.begin(tile);
    MultiplyTileRows<V, W, kPanels>(
        args,
        {.panel = panel,
         .panels = gated ? kPanels / 2 : kPanels,
         .row_begin = begin,
         .rows = args.tiles.begin(tile + 1) - begin},
        args.x + begin * row_bytes);
  }
}

// As many panels at once as there are sums for.
template <class V, class W, int kPanels = V::kMaxFastPanels>
void MultiplyRange(const FastGemmArgs& args, int most_panels) {
  const bool gated = args.epilogue.up != nullptr;
  if constexpr (kPanels > 1) {
    if (kPanels > most_panels) {
      return MultiplyRange<V, W, kPanels / 2>(args, most_panels);
    }
  }
  int panel = args.panel_begin;
  if constexpr (kPanels > 1) {
    const int step = gated ? kPanels / 2 : kPanels;
    for (; panel + step <= args.panel_end; panel += step) {
      MultiplyPanels<V, W, kPanels>(args, panel);
    }
    if (panel == args.panel_end) return;
    FastGemmArgs rest = args;
    rest.panel_begin = panel;
    return MultiplyRange<V, W, kPanels / 2>(rest, most_panels);
  }
  for (; panel < args.panel_end; ++panel) {
    MultiplyPanels<V, W, kPanels>(args, panel);
  }
}

template <class V, template <class> class W>
void FastGemmOfType(const FastGemmArgs& args) {
  const int rows = args.tiles.begin(1);  // no tile has more than one above it
  const bool even = args.tiles.rows % args.tiles.count() == 0;
  const bool gated = args.epilogue.up != nullptr;
  MultiplyRange<V, W<V>>(
      args, gated ? V::kMaxFastPanels : V::FastPanels(even ? rows : rows + 1));
}

template <class V>
void FastGemm(const FastGemmArgs& args) {
  switch (args.segment->type) {
    case PackedType::kQ8_0:
      return FastGemmOfType<V, Q8_0Weights>(args);
    case PackedType::kQ4_0:
      return FastGemmOfType<V, Q4_0Weights>(args);
    case PackedType::kQ4_1:
      return FastGemmOfType<V, Q4_1Weights>(args);
    case PackedType::kQ4_K:
      return FastGemmOfType<V, Q4_KWeights>(args);
    case PackedType::kQ5_K:
      return FastGemmOfType<V, Q5_KWeights>(args);
    case PackedType::kQ6_K:
      return FastGemmOfType<V, Q6_KWeights>(args);
    case PackedType::kInt16:
      return FastGemmOfType<V, Int16Weights>(args);
    case PackedType::kF32:
    case PackedType::kF16:
    case PackedType::kBF16:
      return;  // packed for the strict product
  }
}

}  // namespace lockstep::kernels
