#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/product/fast_gemm_kernel.h"
#include "kernels/product/fast_kernel_args.h"
#include "kernels/product/quantized_rows.h"
#include "kernels/product/quantized_weights.h"
#include "kernels/product/slice_sums.h"
#include "kernels/simd/vector_kernels.h"
#include "kernels/weights/packed_format.h"

// From ranges of panels and tiles of rows to calls of MultiplyQuantized, and
// what becomes of its sums, for a vector type V (integers_*.h).
namespace lockstep::kernels {

// What becomes of the sums of a panel, [rows, 16]: bias and gate are applied as
// they are written, columns past the segment's end are not.
template <class V>
void WriteTile(const FastGemmArgs& args, int panel, int row_begin, int rows,
               const float* sums) {
  const int column = panel * kPanelRows;
  const int left = args.segment->rows - column;
  for (int r = 0; r < rows; ++r) {
    float* y = args.y + (row_begin + r) * args.y_stride + column;
    for (int i = 0; i < kPanelRows; i += V::kWidth) {
      auto value = V::Load(sums + r * kPanelRows + i);
      if (args.bias != nullptr) {
        value = V::Add(value, V::LoadFirst(args.bias + column + i, left - i));
      }
      if (args.gated) {
        value = Gated<V>(args.gate, V::LoadFirst(y + i, left - i), value);
      }
      V::StoreFirst(y + i, value, left - i);
    }
  }
}

// All slices of a panel for the kRows rows of a tile.
template <class V, class W, int kRows>
void MultiplyTile(const FastGemmArgs& args, int panel, int row_begin,
                  const uint8_t* rows) {
  constexpr int kFloats = kRows * kPanelRows;
  const uint8_t* slice_data =
      args.segment->data + panel * args.segment->panel_bytes;
  const ptrdiff_t row_bytes = static_cast<ptrdiff_t>(args.slice_blocks) *
                              RowBlockBytes(RowFormatFor(W::kType)) * kRows;
  SliceSums<V, kFloats> sums;
  for (int slice = 0; slice < args.slices; ++slice) {
    for (int v = 0; v < V::kVectors; ++v) {
      MultiplyQuantized<V, W, kRows>(slice_data, v, args.slice_blocks, rows,
                                     sums.top());
    }
    sums.Push(kFloats);
    slice_data += args.segment->slice_bytes;
    rows += row_bytes;
  }
  sums.Finish(kFloats);
  WriteTile<V>(args, panel, row_begin, kRows, sums.result());
}

// Finds the instance for `num_rows` rows, 1 to kRows.
template <class V, class W, int kRows = V::kMaxFastRows>
void MultiplyTileRows(const FastGemmArgs& args, int panel, int row_begin,
                      int num_rows, const uint8_t* rows) {
  if constexpr (kRows > 1) {
    if (num_rows < kRows) {
      return MultiplyTileRows<V, W, kRows - 1>(args, panel, row_begin, num_rows,
                                               rows);
    }
  }
  MultiplyTile<V, W, kRows>(args, panel, row_begin, rows);
}

// Panel after panel, as they lie: with few rows, memory is the limit.
template <class V, template <class> class W>
void FastGemmOfType(const FastGemmArgs& args) {
  const ptrdiff_t row_bytes =
      static_cast<ptrdiff_t>(RowBlockBytes(RowFormatFor(W<V>::kType))) *
      args.slices * args.slice_blocks;
  for (int panel = args.panel_begin; panel < args.panel_end; ++panel) {
    for (int tile = args.tile_begin; tile < args.tile_end; ++tile) {
      const int begin = args.tiles.begin(tile);
      MultiplyTileRows<V, W<V>>(args, panel, begin,
                                args.tiles.begin(tile + 1) - begin,
                                args.x + begin * row_bytes);
    }
  }
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
    case PackedType::kQ5_1:
      return FastGemmOfType<V, Q5_1Weights>(args);
    case PackedType::kQ2_K:
      return FastGemmOfType<V, Q2_KWeights>(args);
    case PackedType::kQ4_K:
      return FastGemmOfType<V, Q4_KWeights>(args);
    case PackedType::kQ5_K:
      return FastGemmOfType<V, Q5_KWeights>(args);
    case PackedType::kQ6_K:
      return FastGemmOfType<V, Q6_KWeights>(args);
    case PackedType::kInt16:
      return FastGemmOfType<V, Int16Weights>(args);
    case PackedType::kQ4_Z:
      return FastGemmOfType<V, Q4_ZWeights>(args);
    case PackedType::kQ8_F:
      return FastGemmOfType<V, Q8_FWeights>(args);
    case PackedType::kF32:
    case PackedType::kF16:
    case PackedType::kBF16:
      return;  // packed for the strict product
  }
}

}  // namespace lockstep::kernels
