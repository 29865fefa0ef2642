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

bool Takes(absl::Span<const RowGroup> groups, RowFormat format) {
  for (const RowGroup& group : groups) {
    for (const PackedMatrix::Segment& segment : group.w->segments()) {
      if (RowFormatFor(segment.type) == format) return true;
    }
  }
  return false;
}

size_t TileBytes(const PackedMatrix& w, RowFormat format, int rows) {
  return static_cast<size_t>(BlocksPerRow(w.cols(), w.slice_cols())) *
         RowBlockBytes(format) * rows;
}

// A product cut into pieces: blocks of tiles, each with all panels of the first
// segments, which are numbered through in units of kPanelsPerUnit.
class Pieces {
 public:
  Pieces(const PackedMatrix& w, RowFormat format, const RowTiles& tiles,
         size_t num_segments)
      : w_(w), format_(format), tiles_(tiles) {
    const int64_t tile_bytes = TileBytes(w, format, tiles.tile_rows);
    tiles_per_block_ = static_cast<int>(std::clamp<int64_t>(
        kRowBlockBytesInCache / tile_bytes, 1, tiles.count()));
    for (int i = 0; i < std::min(num_segments, w.segments().size()); ++i) {
      units_ += Units(i);
    }
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
  const RowTiles tiles_;
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

RowTiles FastProduct::Tiles(const RowGroup& group) const {
  return {group.rows(), kernels_->tile_rows};
}

template <typename Function>
void FastProduct::ForEachPiece(absl::Span<const RowGroup> groups,
                               RowFormat format, size_t num_segments,
                               const Function& fn) {
  const auto pieces_of = [&](const RowGroup& group) {
    return Pieces(*group.w, format, Tiles(group), num_segments);
  };
  int64_t count = 0;
  for (const RowGroup& group : groups) count += pieces_of(group).count();
  pool_->For(count, 1, [&](int64_t begin, int64_t end) {
    int64_t first = 0;  // of the group's
    for (const RowGroup& group : groups) {
      if (first >= end) return;
      const Pieces pieces = pieces_of(group);
      pieces.ForEach(std::max(begin - first, int64_t{0}),
                     std::min(end - first, pieces.count()),
                     [&](const Piece& piece) { fn(group, piece); });
      first += pieces.count();
    }
  });
}

void FastProduct::Multiply(absl::Span<const RowGroup> groups, const float* x,
                           ptrdiff_t x_stride, float* y, ptrdiff_t y_stride,
                           const float* bias) {
  constexpr size_t kAllSegments = SIZE_MAX;
  for (const RowFormat format : {RowFormat::kSplit, RowFormat::kInt16}) {
    if (!Takes(groups, format)) continue;
    Quantize(groups, format, x, x_stride);
    ForEachPiece(groups, format, kAllSegments,
                 [&](const RowGroup& group, const Piece& piece) {
                   FastGemmArgs args = Args(group, format, piece);
                   const int column = args.segment->row_begin;
                   args.y = y + group.begin * y_stride + column;
                   args.y_stride = y_stride;
                   args.bias = bias == nullptr ? nullptr : bias + column;
                   kernels_->gemm(args);
                 });
  }
}

bool FastProduct::AreGated(absl::Span<const RowGroup> groups) {
  return std::all_of(groups.begin(), groups.end(), [](const RowGroup& group) {
    const std::vector<PackedMatrix::Segment>& segments = group.w->segments();
    return segments.size() == 2 && segments[0].rows == segments[1].rows &&
           segments[0].type == segments[1].type;
  });
}

void FastProduct::MultiplyGated(absl::Span<const RowGroup> groups, Gate gate,
                                const float* x, ptrdiff_t x_stride, float* y,
                                ptrdiff_t y_stride) {
  for (const RowFormat format : {RowFormat::kSplit, RowFormat::kInt16}) {
    if (!Takes(groups, format)) continue;
    Quantize(groups, format, x, x_stride);
    ForEachPiece(groups, format, /*num_segments=*/1,
                 [&](const RowGroup& group, const Piece& piece) {
                   FastGemmArgs args = Args(group, format, piece);
                   args.y = y + group.begin * y_stride;
                   args.y_stride = y_stride;
                   kernels_->gemm(args);
                   args.segment = &group.w->segments()[1];
                   args.gated = true;
                   args.gate = gate;
                   kernels_->gemm(args);
                 });
  }
}

FastGemmArgs FastProduct::Args(const RowGroup& group, RowFormat format,
                               const Piece& piece) const {
  const PackedMatrix& w = *group.w;
  return {.segment = &w.segments()[piece.segment],
          .slices = w.cols() / w.slice_cols(),
          .slice_blocks = BlocksPerRow(w.slice_cols(), w.slice_cols()),
          .panel_begin = piece.panel_begin,
          .panel_end = piece.panel_end,
          .x = rows_.get() + TileBytes(w, format, group.begin),
          .tiles = Tiles(group),
          .tile_begin = piece.tile_begin,
          .tile_end = piece.tile_end,
          .y = nullptr,
          .y_stride = 0,
          .bias = nullptr,
          .gated = false,
          .gate = Gate::kSilu};
}

void FastProduct::Quantize(absl::Span<const RowGroup> groups, RowFormat format,
                           const float* x, ptrdiff_t x_stride) {
  const PackedMatrix& w = *groups.front().w;
  Grow(TileBytes(w, format, groups.back().end));
  int64_t tiles = 0;
  for (const RowGroup& group : groups) tiles += Tiles(group).count();
  const int64_t grain = RowsPerRange(int64_t{w.cols()} * kernels_->tile_rows);
  const auto quantize = [&](int begin, int end) {
    kernels_->quantize({.x = x + begin * x_stride,
                        .x_stride = x_stride,
                        .rows = end - begin,
                        .cols = w.cols(),
                        .slice_cols = w.slice_cols(),
                        .format = format,
                        .out = rows_.get() + TileBytes(w, format, begin)});
  };
  pool_->For(tiles, grain, [&](int64_t begin, int64_t end) {
    int64_t first = 0;  // tile of the group
    for (const RowGroup& group : groups) {
      const RowTiles of_group = Tiles(group);
      const int64_t last = std::min<int64_t>(end - first, of_group.count());
      for (int64_t i = std::max<int64_t>(begin - first, 0); i < last; ++i) {
        const int tile = static_cast<int>(i);
        quantize(group.begin + of_group.begin(tile),
                 group.begin + of_group.begin(tile + 1));
      }
      first += of_group.count();
    }
  });
}

}  // namespace lockstep::kernels
