#include "kernels/fast_product.h"

#include <algorithm>
#include <new>
#include <vector>

#include "kernels/isa/kernel_table.h"
#include "kernels/row_range.h"

namespace lockstep::kernels {
namespace {

constexpr std::align_val_t kAlignment{64};

// Quantized rows that stay in the second-level cache while panels pass by.
constexpr int64_t kRowBlockBytesInCache = 256 << 10;

// Few enough that small matrices too divide evenly over threads.
constexpr int kPanelsPerUnit = 2;

bool Takes(const PackedMatrix& w, RowFormat format) {
  for (const PackedMatrix::Segment& segment : w.segments()) {
    if (RowFormatFor(segment.type) == format) return true;
  }
  return false;
}

size_t TileBytes(const PackedMatrix& w, RowFormat format, int rows) {
  return static_cast<size_t>(BlocksPerRow(w.cols(), w.slice_cols())) *
         RowBlockBytes(format) * rows;
}

// A product cut into pieces: blocks of tiles, each with all panels of all
// segments, which are numbered through in units of kPanelsPerUnit.
class Pieces {
 public:
  Pieces(const PackedMatrix& w, RowFormat format, const RowTiles& tiles,
         int num_segments)
      : w_(w), format_(format), tiles_(tiles) {
    const int64_t tile_bytes = TileBytes(w, format, tiles.tile_rows);
    tiles_per_block_ = static_cast<int>(std::clamp<int64_t>(
        kRowBlockBytesInCache / tile_bytes, 1, tiles.count()));
    for (int i = 0; i < num_segments; ++i) units_ += Units(i);
  }

  int64_t count() const {
    const int blocks =
        (tiles_.count() + tiles_per_block_ - 1) / tiles_per_block_;
    return blocks * units_;
  }

  // Calls multiply(piece) for pieces [begin, end), neighbours together.
  template <typename Multiply>
  void ForEach(int64_t begin, int64_t end, const Multiply& multiply) const {
    while (begin < end) {
      const int block = static_cast<int>(begin / units_);
      int64_t unit = begin % units_;
      int segment = 0;
      while (unit >= Units(segment)) unit -= Units(segment++);
      const int64_t count = std::min(end - begin, Units(segment) - unit);
      const int panels = w_.segments()[segment].panels();
      const int first = static_cast<int>(unit) * kPanelsPerUnit;
      const int last = static_cast<int>(unit + count) * kPanelsPerUnit;
      multiply(FastProduct::Piece{
          .segment = segment,
          .panel_begin = first,
          .panel_end = std::min(last, panels),
          .tile_begin = block * tiles_per_block_,
          .tile_end =
              std::min((block + 1) * tiles_per_block_, tiles_.count())});
      begin += count;
    }
  }

 private:
  // None of a segment of another format.
  int64_t Units(int segment) const {
    const PackedMatrix::Segment& s = w_.segments()[segment];
    if (RowFormatFor(s.type) != format_) return 0;
    return (s.panels() + kPanelsPerUnit - 1) / kPanelsPerUnit;
  }

  const PackedMatrix& w_;
  const RowFormat format_;
  const RowTiles& tiles_;
  int tiles_per_block_ = 1;
  int64_t units_ = 0;
};

}  // namespace

void FastProduct::FreeBytes::operator()(uint8_t* bytes) const {
  ::operator delete[](bytes, kAlignment);
}

FastProduct::FastProduct(const FastKernels* kernels, ThreadPool* pool)
    : kernels_(kernels), pool_(pool) {}

void FastProduct::Reserve(int rows, int cols) {
  // A slice's last block may be short.
  const size_t blocks = cols / kQuantBlock + PackedMatrix::kMaxSlices;
  Grow(blocks * kMostRowBlockBytes * rows);
}

void FastProduct::Grow(size_t bytes) {
  if (bytes <= capacity_) return;
  rows_.reset(static_cast<uint8_t*>(::operator new[](bytes, kAlignment)));
  capacity_ = bytes;
}

void FastProduct::Multiply(const PackedMatrix& w, const float* x,
                           ptrdiff_t x_stride, int rows, float* y,
                           ptrdiff_t y_stride, const float* bias) {
  const RowTiles tiles = {rows, kernels_->tile_rows};
  for (const RowFormat format : {RowFormat::kSplit, RowFormat::kInt16}) {
    if (!Takes(w, format)) continue;
    Quantize(w, format, x, x_stride, tiles);
    const Pieces pieces(w, format, tiles,
                        static_cast<int>(w.segments().size()));
    pool_->For(pieces.count(), 1, [&](int64_t begin, int64_t end) {
      pieces.ForEach(begin, end, [&](const Piece& piece) {
        const int column = w.segments()[piece.segment].row_begin;
        FastGemmArgs args = Args(w, piece, tiles);
        args.y = y + column;
        args.y_stride = y_stride;
        args.bias = bias == nullptr ? nullptr : bias + column;
        kernels_->gemm(args);
      });
    });
  }
}

bool FastProduct::IsGated(const PackedMatrix& gate_up) {
  const std::vector<PackedMatrix::Segment>& segments = gate_up.segments();
  return segments.size() == 2 && segments[0].rows == segments[1].rows &&
         segments[0].type == segments[1].type;
}

void FastProduct::MultiplyGated(const PackedMatrix& gate_up, const float* x,
                                ptrdiff_t x_stride, int rows, float* y,
                                ptrdiff_t y_stride) {
  const std::vector<PackedMatrix::Segment>& segments = gate_up.segments();
  const RowTiles tiles = {rows, kernels_->tile_rows};
  const RowFormat format = RowFormatFor(segments[0].type);
  Quantize(gate_up, format, x, x_stride, tiles);
  const Pieces pieces(gate_up, format, tiles, /*num_segments=*/1);
  pool_->For(pieces.count(), 1, [&](int64_t begin, int64_t end) {
    pieces.ForEach(begin, end, [&](const Piece& piece) {
      FastGemmArgs args = Args(gate_up, piece, tiles);
      args.y = y;
      args.y_stride = y_stride;
      kernels_->gemm(args);
      args.segment = &segments[1];
      args.gated = true;
      kernels_->gemm(args);
    });
  });
}

FastGemmArgs FastProduct::Args(const PackedMatrix& w, const Piece& piece,
                               const RowTiles& tiles) const {
  return {.segment = &w.segments()[piece.segment],
          .slices = w.cols() / w.slice_cols(),
          .slice_blocks = BlocksPerRow(w.slice_cols(), w.slice_cols()),
          .panel_begin = piece.panel_begin,
          .panel_end = piece.panel_end,
          .x = rows_.get(),
          .tiles = tiles,
          .tile_begin = piece.tile_begin,
          .tile_end = piece.tile_end,
          .y = nullptr,
          .y_stride = 0,
          .bias = nullptr,
          .gated = false};
}

void FastProduct::Quantize(const PackedMatrix& w, RowFormat format,
                           const float* x, ptrdiff_t x_stride,
                           const RowTiles& tiles) {
  Grow(TileBytes(w, format, tiles.rows));
  const int64_t grain = RowsPerRange(int64_t{w.cols()} * tiles.tile_rows);
  pool_->For(tiles.count(), grain, [&](int64_t begin, int64_t end) {
    for (int64_t tile = begin; tile < end; ++tile) {
      const int row = tiles.begin(static_cast<int>(tile));
      kernels_->quantize({.x = x + row * x_stride,
                          .x_stride = x_stride,
                          .rows = tiles.begin(static_cast<int>(tile) + 1) - row,
                          .cols = w.cols(),
                          .slice_cols = w.slice_cols(),
                          .format = format,
                          .out = rows_.get() + TileBytes(w, format, row)});
    }
  });
}

}  // namespace lockstep::kernels
