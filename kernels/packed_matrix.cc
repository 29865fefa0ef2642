#include "kernels/packed_matrix.h"

#include <glog/logging.h>

#include <cstring>
#include <new>

namespace lockstep::kernels {
namespace {

constexpr std::align_val_t kAlignment{64};

}  // namespace

void PackedMatrix::FreeAligned::operator()(uint8_t* data) const {
  ::operator delete[](data, kAlignment);
}

PackedMatrix::PackedMatrix(int cols, int slice_cols)
    : cols_(cols), slice_cols_(slice_cols) {
  CHECK_GT(cols, 0);
  CHECK_GT(slice_cols, 0);
  CHECK_EQ(cols % slice_cols, 0);
  CHECK_LE(cols / slice_cols, kMaxSlices);
}

void PackedMatrix::AddRows(DType type, int rows, const void* source,
                           size_t row_bytes, int64_t col_begin) {
  const int block = BlockValues(type);
  CHECK_EQ(slice_cols_ % block, 0) << DTypeName(type);
  CHECK_EQ(col_begin % block, 0) << DTypeName(type);
  if (rows == 0) return;
  Segment segment = {type, rows_, rows, nullptr, PanelBytes(type, cols_)};
  const size_t bytes = segment.panels() * segment.panel_bytes;
  std::unique_ptr<uint8_t[], FreeAligned> buffer(
      static_cast<uint8_t*>(::operator new[](bytes, kAlignment)));
  std::memset(buffer.get(), 0, bytes);
  const uint8_t* row_source =
      static_cast<const uint8_t*>(source) + RowBytes(type, col_begin);
  for (int row = 0; row < rows; ++row) {
    PackRow(type, row_source, cols_, row % kPanelRows,
            buffer.get() + (row / kPanelRows) * segment.panel_bytes);
    row_source += row_bytes;
  }
  segment.data = buffer.get();
  segments_.push_back(segment);
  buffers_.push_back(std::move(buffer));
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
