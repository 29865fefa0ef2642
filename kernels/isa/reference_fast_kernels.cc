// The oracle of the fast product: as its definition reads, one sum at a time.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>

#include "kernels/isa/kernel_table.h"
#include "kernels/product/fast_kernel_args.h"
#include "kernels/product/packed_block.h"
#include "kernels/product/quantized_rows.h"
#include "kernels/product/tree_sum.h"
#include "kernels/simd/lanes.h"

namespace lockstep::kernels {
namespace {

// A row's block, in tiles of one row.
struct RowBlock {
  int q[kQuantBlock] = {};
  float scale = 0;
};

RowBlock RoundBlock(const float* x, int cols) {
  RowBlock block;
  float max = 0;
  for (int i = 0; i < cols; ++i) {
    if (!std::isfinite(x[i])) {
      block.scale = std::numeric_limits<float>::quiet_NaN();
      return block;
    }
    max = std::max(max, std::abs(x[i]));
  }
  if (max < kLeastMax) return block;
  block.scale = max / kQuantLimit;
  for (int i = 0; i < cols; ++i) {
    block.q[i] = static_cast<int>(std::nearbyint(x[i] * (kQuantLimit / max)));
  }
  return block;
}

template <typename T>
uint8_t* Append(T value, uint8_t* out) {
  std::memcpy(out, &value, sizeof(value));
  return out + sizeof(value);
}

template <typename T>
T Take(const uint8_t*& bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(value));
  bytes += sizeof(value);
  return value;
}

// The multiple of 128 nearest to q, over 128; the rest is in [-64, 64).
int HighOf(int q) {
  constexpr int kHalf = 1 << (kLowBits - 1);
  return (q + kHalf) >> kLowBits;
}

uint8_t* AppendBlock(const RowBlock& block, RowFormat format, uint8_t* out) {
  if (format == RowFormat::kInt16) {
    for (const int q : block.q) out = Append(static_cast<int16_t>(q), out);
    return Append(block.scale, out);
  }
  for (const int q : block.q) out = Append(static_cast<int8_t>(HighOf(q)), out);
  for (const int q : block.q) {
    out = Append(static_cast<int8_t>(q - (HighOf(q) << kLowBits)), out);
  }
  const int first = std::accumulate(block.q, block.q + kQuantBlock / 2, 0);
  const int sum = std::accumulate(block.q, block.q + kQuantBlock, 0);
  out = Append(block.scale, out);
  out = Append(block.scale * static_cast<float>(sum), out);
  out = Append(-sum, out);
  return Append(-first, out);
}

RowBlock TakeBlock(RowFormat format, const uint8_t* bytes) {
  RowBlock block;
  if (format == RowFormat::kInt16) {
    for (int& q : block.q) q = Take<int16_t>(bytes);
  } else {
    for (int& q : block.q) q = Take<int8_t>(bytes) * (1 << kLowBits);
    for (int& q : block.q) q += Take<int8_t>(bytes);
  }
  block.scale = Take<float>(bytes);
  return block;
}

void Quantize(const QuantizeArgs& args) {
  uint8_t* out = args.out;
  for (int slice = 0; slice < args.cols; slice += args.slice_cols) {
    for (int done = 0; done < args.slice_cols; done += kQuantBlock) {
      const int cols = std::min(kQuantBlock, args.slice_cols - done);
      out = AppendBlock(RoundBlock(args.x + slice + done, cols), args.format,
                        out);
    }
  }
}

float AddBlock(const PackedBlock& w, const RowBlock& x, float sum) {
  for (int fold = 0; fold < kQuantBlock; fold += w.fold_cols) {
    int32_t dot = 0;
    for (int i = fold; i < fold + w.fold_cols; ++i) dot += w.quant[i] * x.q[i];
    sum = std::fma(static_cast<float>(dot),
                   w.scale[fold / w.fold_cols] * x.scale, sum);
  }
  if (!w.has_min) return sum;
  for (int fold = 0; fold < kQuantBlock; fold += w.fold_cols) {
    const int total = std::accumulate(x.q + fold, x.q + fold + w.fold_cols, 0);
    sum = std::fma(w.min[fold / w.fold_cols],
                   x.scale * static_cast<float>(total), sum);
  }
  return sum;
}

// Row `j` of a segment times a row of X.
float Product(const FastGemmArgs& args, const PackedMatrix::Segment& segment,
              int j, const uint8_t* x) {
  const RowFormat format = RowFormatFor(segment.type);
  const uint8_t* panel = segment.data + (j / kPanelRows) * segment.panel_bytes;
  return TreeSum(args.slices, [&](int slice) {
    float sum = 0;
    for (int b = 0; b < args.slice_blocks; ++b) {
      const int block = slice * args.slice_blocks + b;
      sum = AddBlock(
          UnpackPackedBlock(segment.type, panel + slice * segment.slice_bytes,
                            j % kPanelRows, b),
          TakeBlock(format,
                    x + static_cast<ptrdiff_t>(block) * RowBlockBytes(format)),
          sum);
    }
    return sum;
  });
}

void Gemm(const FastGemmArgs& args) {
  const PackedMatrix::Segment& w = *args.segment;
  const RowFormat format = RowFormatFor(w.type);
  const ptrdiff_t row_bytes = static_cast<ptrdiff_t>(args.slices) *
                              args.slice_blocks * RowBlockBytes(format);
  const int row_end = std::min(w.rows, args.panel_end * kPanelRows);
  for (int j = args.panel_begin * kPanelRows; j < row_end; ++j) {
    for (int tile = args.tile_begin; tile < args.tile_end; ++tile) {
      const int i = args.tiles.begin(tile);
      const uint8_t* x = args.x + i * row_bytes;
      float value = Product(args, w, j, x);
      float& y = args.y[i * args.y_stride + j];
      if (args.bias != nullptr) value += args.bias[j];
      if (args.gated) value = Gated(args.gate, y, value);
      y = value;
    }
  }
}

}  // namespace

const FastKernels kReferenceFastKernels = {
    .tile_rows = 1, .quantize = Quantize, .gemm = Gemm};

}  // namespace lockstep::kernels
