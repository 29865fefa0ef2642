#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "kernels/threads/thread_pool.h"
#include "kernels/weights/arithmetic.h"
#include "kernels/weights/dtype.h"
#include "kernels/weights/packed_format.h"
#include "kernels/weights/weight_arena.h"

namespace lockstep::kernels {

// Who packs, and into what.
struct Packing {
  ThreadPool* pool = nullptr;    // null: the calling thread
  WeightArena* arena = nullptr;  // outlives the matrix; null: its own
};

// A weight matrix W [rows, cols] repacked for products X·Wᵀ: panels of 16 rows
// whose values for the same columns lie side by side, so that SIMD lanes are
// output columns, whatever the number of rows of X and of threads.
//
//   PackedMatrix qkv(/*cols=*/576, /*slice_cols=*/576);
//   qkv.AddRows(DType::kQ4_1, 576, q_bytes, row_bytes, /*col_begin=*/0);
//   qkv.AddRows(DType::kQ8_0, 192, k_bytes, …);  // types may differ
//
// K is cut into slices of `slice_cols`; each slice is summed in order of k from
// zero (kStrict: one chain of fused multiply-adds), the slices as a binary tree
// (see TreeSum). Column-parallel matrices have one slice. Row-parallel ones
// have eight over all ranks, so that ranks that hold 8, 4, 2 or 1 of them
// compute the same sub-trees.
//
// Immutable once filled; then any number of threads may read it.
class PackedMatrix {
 public:
  // Rows of one stored type; what AddRows added.
  struct Segment {
    PackedType type;
    int row_begin;  // first output column this segment writes
    int rows;       // the last panel is padded with zeros
    // [ceil(rows / 16)] panels, each panel_bytes; see packed_format.h. The
    // first is 64-byte aligned; in the matrix's own memory to 2 MiB, where
    // there are as many bytes.
    const uint8_t* data;
    size_t panel_bytes;
    size_t slice_bytes;  // of a panel; from one slice to the next

    int panels() const { return (rows + kPanelRows - 1) / kPanelRows; }
  };

  // No rows and no columns.
  PackedMatrix() = default;

  // For products in `arithmetic`. REQUIRES: cols % slice_cols == 0, at most
  // kMaxSlices slices, and slice_cols divides into blocks of every type that is
  // added.
  PackedMatrix(int cols, int slice_cols,
               Arithmetic arithmetic = Arithmetic::kStrict);

  PackedMatrix(PackedMatrix&&) = default;
  PackedMatrix& operator=(PackedMatrix&&) = default;

  // Writes columns [0, cols()) of `count` rows from `first` on, one after
  // another as a row of the type lies. Any thread of the pool.
  using FillRows = std::function<void(int first, int count, uint8_t* out)>;

  // Appends `rows` rows, a panel's at a time.
  void AddRows(DType type, int rows, const FillRows& fill,
               const Packing& packing = {});

  // Appends `rows` rows: columns [col_begin, col_begin + cols) of rows as
  // stored, `row_bytes` apart, starting at `source`.
  // REQUIRES: col_begin % BlockValues(type) == 0.
  void AddRows(DType type, int rows, const void* source, size_t row_bytes,
               int64_t col_begin, const Packing& packing = {});

  int rows() const { return rows_; }
  int cols() const { return cols_; }
  int slice_cols() const { return slice_cols_; }
  Arithmetic arithmetic() const { return arithmetic_; }
  const std::vector<Segment>& segments() const { return segments_; }

  // Panels of all segments.
  int panels() const;

  // Bytes of packed weights.
  size_t bytes() const;

  static constexpr int kMaxSlices = 15;

 private:
  // Fills panels from `begin` up to `end`, the first of which is at `data`.
  using PackPanels =
      std::function<void(int64_t begin, int64_t end, uint8_t* data)>;

  Segment NewSegment(DType type, int rows) const;
  void Append(Segment segment, const PackPanels& pack, const Packing& packing);

  int rows_ = 0;
  int cols_ = 0;
  int slice_cols_ = 0;
  Arithmetic arithmetic_ = Arithmetic::kStrict;
  std::vector<Segment> segments_;
  WeightArena own_memory_{/*piece_bytes=*/0};
};

}  // namespace lockstep::kernels
