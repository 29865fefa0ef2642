#include "kernels/weights/packed_matrix.h"

#include <glog/logging.h>

#include <algorithm>

#include "kernels/weights/panel_packing.h"

namespace lockstep::kernels {

PackedMatrix::PackedMatrix(int cols, int slice_cols, Arithmetic arithmetic)
    : cols_(cols), slice_cols_(slice_cols), arithmetic_(arithmetic) {
  CHECK_GT(cols, 0);
  CHECK_GT(slice_cols, 0);
  CHECK_EQ(cols % slice_cols, 0);
  CHECK_LE(cols / slice_cols, kMaxSlices);
}

void PackedMatrix::AddRows(DType type, int rows, const void* source,
                           size_t row_bytes, int64_t col_begin,
                           const Packing& packing) {
  const int block = BlockValues(type);
  CHECK_EQ(slice_cols_ % block, 0) << DTypeName(type);
  CHECK_EQ(col_begin % block, 0) << DTypeName(type);
  if (rows == 0) return;
  const PackedType packed = PackedTypeOf(type, arithmetic_);
  const size_t slice_bytes = SliceBytes(packed, slice_cols_);
  Segment segment = {.type = packed,
                     .row_begin = rows_,
                     .rows = rows,
                     .data = nullptr,
                     .panel_bytes = cols_ / slice_cols_ * slice_bytes,
                     .slice_bytes = slice_bytes};
  const size_t bytes = segment.panels() * segment.panel_bytes;
  WeightArena* arena = packing.arena;
  if (arena == nullptr) arena = &own_memory_;
  uint8_t* const data = arena->Allocate(bytes);
  const uint8_t* first =
      static_cast<const uint8_t*>(source) + RowBytes(type, col_begin);
  const auto pack = [&](int64_t begin, int64_t end) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int row = static_cast<int>(panel) * kPanelRows;
      PackPanel(packed,
                {type, first + row * row_bytes, row_bytes,
                 std::min(kPanelRows, rows - row)},
                cols_, slice_cols_, data + panel * segment.panel_bytes);
    }
  };
  if (packing.pool == nullptr) {
    pack(0, segment.panels());
  } else {
    packing.pool->For(segment.panels(), 1, pack);
  }
  segment.data = data;
  segments_.push_back(segment);
  rows_ += rows;
}

int PackedMatrix::panels() const {
  int panels = 0;
  for (const Segment& segment : segments_) panels += segment.panels();
  return panels;
}

size_t PackedMatrix::bytes() const {
  size_t bytes = 0;
  for (const Segment& segment : segments_) {
    bytes += segment.panels() * segment.panel_bytes;
  }
  return bytes;
}

}  // namespace lockstep::kernels
