#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/paged_kv.h"
#include "kernels/product/fast_kernel_args.h"
#include "kernels/weights/packed_matrix.h"

namespace lockstep::kernels {

// Sums of one range of panels: y[i, row_begin + j] for every row i of x.
struct GemmArgs {
  const PackedMatrix::Segment* segment;
  int cols;
  int slice_cols;
  int panel_begin;
  int panel_end;
  const float* x;  // [rows, cols]
  ptrdiff_t x_stride;
  int rows;
  float* y;  // [rows, all output columns of the matrix]
  ptrdiff_t y_stride;
};

// A row of attention is summed over chunks of positions counted from 0, each a
// softmax of its own that is rescaled, block by block, as larger scores turn
// up; then the chunks are merged in order. Whoever computes them, on whatever
// threads, gets the same bits.
inline constexpr int kAttendBlock = 64;
inline constexpr int kAttendChunk = 512;
inline constexpr int kMaxAttendRows = 64;

// A tile of attention: the query heads of consecutive tokens of one sequence
// that share a key-value head. Row r is head heads[r % rows_per_token] of token
// r / rows_per_token, belongs to position first_position + r / rows_per_token
// and sees positions up to it. All of the tile's tokens lie in one block of
// kAttendBlock positions.
struct AttendArgs {
  const float* q;  // of the first token, [heads, head_dim]
  ptrdiff_t q_stride;
  float scale;       // of q
  const int* heads;  // [rows_per_token]
  int rows;          // at most kMaxAttendRows
  int rows_per_token;
  int first_position;
  const int32_t* pages;
  const PagedKv* kv;  // head_dim at most kMaxHeadDim
  int kv_head;
  float* out;  // of the first token, [heads, head_dim]
  ptrdiff_t out_stride;
};

// Softmax sums of a tile's rows over some of their positions: the largest
// score, Σ e^(score - max), and Σ e^(score - max)·value.
struct AttendSums {
  float* max;  // [rows]
  float* sum;  // [rows]
  float* out;  // [rows, PaddedHeadDim(head_dim)]
};

inline constexpr int PaddedHeadDim(int head_dim) {
  return (head_dim + 15) / 16 * 16;
}

// Those of the fast product; see fast_gemm_kernel.h for what they compute.
struct FastKernels {
  int tile_rows;  // of quantized_rows.h
  void (*quantize)(const QuantizeArgs& args);
  void (*gemm)(const FastGemmArgs& args);
};

extern const FastKernels kReferenceFastKernels;
extern const FastKernels kAvx2FastKernels;
extern const FastKernels kAvx512FastKernels;

// One instruction set's kernels; each works on the calling thread alone and
// gives the bits that lanes.h, dtype.h and the reference define.
struct KernelTable {
  const char* isa;
  const FastKernels* fast;
  void (*gemm)(const GemmArgs& args);
  // Sums of positions kAttendChunk·chunk … of the tile; there is at least one.
  void (*attend_chunk)(const AttendArgs& args, int chunk, AttendSums sums);
  // Adds the sums of the chunk that follows those of `sums`.
  void (*merge_chunk)(const AttendArgs& args, AttendSums chunk,
                      AttendSums sums);
  // out = sums.out / sums.sum
  void (*finish_attention)(const AttendArgs& args, AttendSums sums);
  void (*rms_norm)(const float* x, int dim, const float* weight, float eps,
                   float* y);
  // y = silu(gate)·up
  void (*silu_mul)(const float* gate, const float* up, int dim, float* y);
};

extern const KernelTable kReferenceKernels;
extern const KernelTable kAvx2Kernels;  // needs AVX2, FMA and F16C
// Needs AVX-512 F, BW, VL, DQ and VNNI too.
extern const KernelTable kAvx512Kernels;

}  // namespace lockstep::kernels
