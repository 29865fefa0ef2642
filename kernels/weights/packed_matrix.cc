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

PackedMatrix::Segment PackedMatrix::NewSegment(DType type, int rows) const {
  CHECK_EQ(slice_cols_ % BlockValues(type), 0) << DTypeName(type);
  const PackedType packed = PackedTypeOf(type, arithmetic_);
  const size_t slice_bytes = SliceBytes(packed, slice_cols_);
  return {.type = packed,
          .row_begin = rows_,
          .rows = rows,
          .data = nullptr,
          .panel_bytes = cols_ / slice_cols_ * slice_bytes,
          .slice_bytes = slice_bytes};
}

void PackedMatrix::Append(Segment segment, const PackPanels& pack,
                          const Packing& packing) {
  if (segment.rows == 0) return;
  WeightArena* arena = packing.arena;
  if (arena == nullptr) arena = &own_memory_;
  uint8_t* const data = arena->Allocate(segment.panels() * segment.panel_bytes);
  const auto pack_from = [&](int64_t begin, int64_t end) {
    pack(begin, end, data + begin * segment.panel_bytes);
  };
  if (packing.pool == nullptr) {
    pack_from(0, segment.panels());
  } else {
    packing.pool->For(segment.panels(), 1, pack_from);
  }
  segment.data = data;
  segments_.push_back(segment);
  rows_ += segment.rows;
}

void PackedMatrix::AddRows(DType type, int rows, const void* source,
                           size_t row_bytes, int64_t col_begin,
                           const Packing& packing) {
  CHECK_EQ(col_begin % BlockValues(type), 0) << DTypeName(type);
  const Segment segment = NewSegment(type, rows);
  const uint8_t* first =
      static_cast<const uint8_t*>(source) + RowBytes(type, col_begin);
  const auto pack = [&](int64_t begin, int64_t end, uint8_t* data) {
    for (int64_t panel = begin; panel < end; ++panel) {
      const int row = static_cast<int>(panel) * kPanelRows;
      PackPanel(segment.type,
                {type, first + row * row_bytes, row_bytes,
                 std::min(kPanelRows, rows - row)},
                cols_, slice_cols_, data);
      data += segment.panel_bytes;
    }
  };
  Append(segment, pack, packing);
}

void PackedMatrix::AddRows(DType type, int rows, const FillRows& fill,
                           const Packing& packing) {
  const Segment segment = NewSegment(type, rows);
  const size_t row_bytes = RowBytes(type, cols_);
  const auto pack = [&](int64_t begin, int64_t end, uint8_t* data) {
    std::vector<uint8_t> stored(kPanelRows * row_bytes);
    for (int64_t panel = begin; panel < end; ++panel) {
      const int row = static_cast<int>(panel) * kPanelRows;
      const int count = std::min(kPanelRows, rows - row);
      fill(row, count, stored.data());
      PackPanel(segment.type, {type, stored.data(), row_bytes, count}, cols_,
                slice_cols_, data);
      data += segment.panel_bytes;
    }
  };
  Append(segment, pack, packing);
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
