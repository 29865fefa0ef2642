#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dtype.h"
#include "kernels/kernel_table.h"
#include "kernels/matrix_tile.h"
#include "kernels/packed_format.h"
#include "kernels/weight_decoders.h"

// The matrix product for a vector type V (simd_*.h). Two ways to the same bits:
// for few rows of X weights are decoded in registers and used at once; for many
// a block of them is decoded into the first-level cache and multiplied as fp32.
namespace lockstep::kernels {

// Partial sums of slices, merged as TreeSum does: a binary counter whose digit
// n holds the sum of 2^n slices. Fill top(), then call Push.
template <class V, int kFloats>
class SliceSums {
 public:
  float* top() { return level_[depth_]; }
  const float* result() const { return level_[0]; }

  // The top is the next slice's sum; `used` of its floats matter.
  void Push(int used) {
    ++depth_;
    for (int n = ++slices_; n % 2 == 0; n /= 2) Merge(used);
  }
  void Finish(int used) {
    while (depth_ > 1) Merge(used);
  }

 private:
  void Merge(int used) {
    float* left = level_[depth_ - 2];
    const float* right = level_[depth_ - 1];
    for (int i = 0; i < used; i += V::kWidth) {
      V::Store(left + i, V::Add(V::Load(left + i), V::Load(right + i)));
    }
    --depth_;
  }

  // kMaxSlices = 15 = 1111b: three digits and the slice that comes in.
  static_assert(PackedMatrix::kMaxSlices < 16);
  alignas(64) float level_[4][kFloats];
  int depth_ = 0;
  int slices_ = 0;
};

// Writes the finished sums [rows, 16·panels] of panels from `panel` on to y,
// less the padding of the last panel.
template <class V>
void WriteSums(const GemmArgs& args, const float* sums, int row_begin, int rows,
               int panel, int panels) {
  const int column = panel * kPanelRows;
  const int left = args.segment->rows - column;
  const int width = panels * kPanelRows;
  for (int r = 0; r < rows; ++r) {
    float* y = args.y + (row_begin + r) * args.y_stride +
               args.segment->row_begin + column;
    for (int i = 0; i < width; i += V::kWidth) {
      V::StoreFirst(y + i, V::Load(sums + r * width + i), left - i);
    }
  }
}

// How far ahead of the decoding weights are fetched.
inline constexpr int kPrefetchBytes = 1024;

// Sums of kPanels panels over `cols` columns for kRows rows, all in registers.
template <class V, class D, int kRows, int kPanels>
[[gnu::noinline]] void MultiplyDecoding(const uint8_t* panels,
                                        size_t panel_bytes, int cols,
                                        const float* x, ptrdiff_t x_stride,
                                        float* sums) {
  typename V::Floats sum[kRows][kPanels][V::kVectors];
  for (auto& row : sum) {
    for (auto& panel : row) {
      for (auto& vector : panel) vector = V::Zero();
    }
  }
  const typename D::Constants constants = D::MakeConstants();
  const uint8_t* group = panels;
  for (int col = 0; col < cols; col += D::kFormat.group_cols) {
    typename D::Scales scales[kPanels][V::kVectors];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
      for (int v = 0; v < V::kVectors; ++v) {
        scales[p][v] = D::LoadScales(group + p * panel_bytes, v);
      }
    }
    for (int n = 0; n < D::kFormat.group_cols / D::kPacketCols; ++n) {
      typename D::Packet packet[kPanels][V::kVectors];
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
        for (int v = 0; v < V::kVectors; ++v) {
          packet[p][v] = D::LoadPacket(group + p * panel_bytes, n, v);
        }
        constexpr int kPacketBytes =
            D::kFormat.group_bytes * D::kPacketCols / D::kFormat.group_cols;
        for (int line = 0; line < kPacketBytes; line += 64) {
          __builtin_prefetch(group + p * panel_bytes + n * kPacketBytes + line +
                             kPrefetchBytes);
        }
      }
#pragma GCC unroll 8
      for (int i = 0; i < D::kPacketCols; ++i) {
        typename V::Floats value[kRows];
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          value[r] = V::Set(x[r * x_stride + i]);
        }
#pragma GCC unroll 4
        for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
          for (int v = 0; v < V::kVectors; ++v) {
            const typename V::Floats weight =
                D::Decode(scales[p][v], packet[p][v], i, constants);
#pragma GCC unroll 4
            for (int r = 0; r < kRows; ++r) {
              sum[r][p][v] = V::Fma(value[r], weight, sum[r][p][v]);
            }
          }
        }
      }
      x += D::kPacketCols;
    }
    group += D::kFormat.group_bytes;
  }
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kPanels; ++p) {
      for (int v = 0; v < V::kVectors; ++v) {
        V::Store(sums + (r * kPanels + p) * kPanelRows + v * V::kWidth,
                 sum[r][p][v]);
      }
    }
  }
}

// All slices of kPanels panels for kRows rows.
template <class V, class D, int kRows, int kPanels>
void MultiplySlices(const GemmArgs& args, int panel) {
  constexpr int kFloats = kRows * kPanels * kPanelRows;
  SliceSums<V, kFloats> sums;
  const size_t panel_bytes = args.segment->panel_bytes;
  const uint8_t* panels = args.segment->data + panel * panel_bytes;
  for (int col = 0; col < args.cols; col += args.slice_cols) {
    MultiplyDecoding<V, D, kRows, kPanels>(panels, panel_bytes, args.slice_cols,
                                           args.x + col, args.x_stride,
                                           sums.top());
    sums.Push(kFloats);
    panels += args.slice_cols / D::kFormat.group_cols * D::kFormat.group_bytes;
  }
  sums.Finish(kFloats);
  WriteSums<V>(args, sums.result(), 0, kRows, panel, kPanels);
}

template <class V, class D, int kRows, int kPanels = V::DirectPanels(kRows)>
int MultiplyWidestSlices(const GemmArgs& args, int panel) {
  if constexpr (kPanels > 1) {
    if (args.panel_end - panel < kPanels) {
      return MultiplyWidestSlices<V, D, kRows, kPanels - 1>(args, panel);
    }
  }
  MultiplySlices<V, D, kRows, kPanels>(args, panel);
  return kPanels;
}

// For at most V::kMaxDirectRows rows.
template <class V, class D, int kRows = V::kMaxDirectRows>
void GemmFewRows(const GemmArgs& args) {
  if constexpr (kRows > 1) {
    if (args.rows < kRows) return GemmFewRows<V, D, kRows - 1>(args);
  }
  for (int panel = args.panel_begin; panel < args.panel_end;) {
    panel += MultiplyWidestSlices<V, D, kRows>(args, panel);
  }
}

// Decodes `cols` columns of a panel to fp32, [cols, 16].
template <class V, class D>
void DecodeColumns(const uint8_t* group, int cols, float* out) {
  const typename D::Constants constants = D::MakeConstants();
  for (int col = 0; col < cols; col += D::kFormat.group_cols) {
    for (int v = 0; v < V::kVectors; ++v) {
      const typename D::Scales scales = D::LoadScales(group, v);
      float* group_out = out + col * kPanelRows + v * V::kWidth;
      for (int n = 0; n < D::kFormat.group_cols / D::kPacketCols; ++n) {
        const typename D::Packet packet = D::LoadPacket(group, n, v);
#pragma GCC unroll 8
        for (int i = 0; i < D::kPacketCols; ++i) {
          V::Store(group_out + (n * D::kPacketCols + i) * kPanelRows,
                   D::Decode(scales, packet, i, constants));
        }
      }
    }
    group += D::kFormat.group_bytes;
  }
}

// F32 panels need no decoding.
struct NoDecoder {
  static constexpr PackedFormat kFormat = FormatOfPacked(DType::kF32);
};

// A block of weights is 16 KiB of fp32 and meets up to kBlockRows rows, whose
// sums wait in the second-level cache.
inline constexpr int kBlockCols = 128;
inline constexpr int kBlockRows = 120;

template <class V>
struct BlockBuffers {
  // Panels that are multiplied together.
  static constexpr int kPanels = V::TilePanels(1);
  alignas(64) float weights[kPanels * kBlockCols * kPanelRows];
  SliceSums<V, kBlockRows * kPanels * kPanelRows> sums;
};

// One slice of `panels` panels, from column `col_begin`, into t.c.
template <class V, class D>
void MultiplySlice(const GemmArgs& args, int panel, int col_begin,
                   float* weights, MatrixTile t) {
  const size_t panel_bytes = args.segment->panel_bytes;
  for (int done = 0; done < args.slice_cols; done += t.k) {
    const int col = col_begin + done;
    t.k = args.slice_cols - done < kBlockCols ? args.slice_cols - done
                                              : kBlockCols;
    t.x = args.x + col;
    t.accumulate = done > 0;
    const uint8_t* source = args.segment->data + panel * panel_bytes +
                            col / D::kFormat.group_cols *
                                static_cast<size_t>(D::kFormat.group_bytes);
    const float* w[BlockBuffers<V>::kPanels];
    for (int p = 0; p < t.panels; ++p) {
      const uint8_t* panel_source = source + p * panel_bytes;
      if constexpr (D::kFormat.group_bytes == sizeof(float) * kPanelRows) {
        w[p] = reinterpret_cast<const float*>(panel_source);
      } else {
        float* decoded = weights + p * kBlockCols * kPanelRows;
        DecodeColumns<V, D>(panel_source, t.k, decoded);
        w[p] = decoded;
      }
    }
    t.w = w;
    Multiply<V>(t);
  }
}

template <class V, class D>
void GemmManyRows(const GemmArgs& args) {
  const int blocks = (args.rows + kBlockRows - 1) / kBlockRows;
  for (int panel = args.panel_begin; panel < args.panel_end;) {
    const int left = args.panel_end - panel;
    const int panels =
        left < BlockBuffers<V>::kPanels ? left : BlockBuffers<V>::kPanels;
    for (int block = 0, row = 0, rows; block < blocks; ++block, row += rows) {
      rows = (args.rows - row) / (blocks - block);
      BlockBuffers<V> buffers;
      const int width = panels * kPanelRows;
      GemmArgs part = args;
      part.x = args.x + row * args.x_stride;
      for (int col = 0; col < args.cols; col += args.slice_cols) {
        MultiplySlice<V, D>(part, panel, col, buffers.weights,
                            {.x = nullptr,
                             .x_stride = args.x_stride,
                             .rows = rows,
                             .w = nullptr,
                             .k_stride = kPanelRows,
                             .panels = panels,
                             .k = 0,
                             .c = buffers.sums.top(),
                             .c_stride = width,
                             .accumulate = false});
        buffers.sums.Push(rows * width);
      }
      buffers.sums.Finish(rows * width);
      WriteSums<V>(args, buffers.sums.result(), row, rows, panel, panels);
    }
    panel += panels;
  }
}

template <class V, class D>
void GemmOfType(const GemmArgs& args) {
  if (args.rows <= V::kMaxDirectRows) {
    GemmFewRows<V, D>(args);
  } else {
    GemmManyRows<V, D>(args);
  }
}

template <class V>
void Gemm(const GemmArgs& args) {
  switch (args.segment->type) {
    case DType::kF32:
      return GemmManyRows<V, NoDecoder>(args);
    case DType::kF16:
      return GemmOfType<V, HalfDecoder<V, DType::kF16>>(args);
    case DType::kBF16:
      return GemmOfType<V, HalfDecoder<V, DType::kBF16>>(args);
    case DType::kQ8_0:
      return GemmOfType<V, Q8Decoder<V>>(args);
    case DType::kQ4_0:
      return GemmOfType<V, Q4_0Decoder<V>>(args);
    case DType::kQ4_1:
      return GemmOfType<V, Q4_1Decoder<V>>(args);
    case DType::kQ6_K:
      return GemmOfType<V, Q6KDecoder<V>>(args);
  }
}

}  // namespace lockstep::kernels
