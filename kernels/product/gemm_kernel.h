#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/product/gemm_args.h"
#include "kernels/product/matrix_tile.h"
#include "kernels/product/slice_sums.h"
#include "kernels/product/weight_decoders.h"
#include "kernels/weights/packed_format.h"

// The strict matrix product for a vector type V (simd_*.h). Two ways to the
// same bits: for few rows of X weights are decoded in registers and used at
// once; for many a block of them is decoded into the first-level cache and
// multiplied as fp32.
namespace lockstep::kernels {

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

// Sums of kPanels panels over a slice of `cols` columns for kRows rows, all in
// registers. `slices` is where the first panel's slice starts.
template <class V, class D, int kRows, int kPanels>
[[gnu::noinline]] void MultiplyDecoding(const uint8_t* slices,
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
  // Packets are visited in order of columns, those of a run together.
  constexpr int kPackets = D::kRunCols / D::kPacketCols;
  constexpr int kPacketBytes =
      D::kFormat.group_bytes * D::kPacketCols / D::kFormat.group_cols;
  const uint8_t* group = slices;
  for (int col = 0, run = 0; col < cols; col += D::kRunCols) {
    typename D::Scales scales[kPanels][V::kVectors];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
      for (int v = 0; v < V::kVectors; ++v) {
        scales[p][v] = D::LoadScales(group + p * panel_bytes, run, v);
      }
    }
    for (int n = 0; n < kPackets; ++n) {
      typename D::Packet packet[kPanels][V::kVectors];
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
#pragma GCC unroll 2
        for (int v = 0; v < V::kVectors; ++v) {
          packet[p][v] = D::LoadPacket(group + p * panel_bytes, run, n, v);
        }
        const uint8_t* ahead = group + p * panel_bytes + kPrefetchBytes +
                               (run * kPackets + n) * kPacketBytes;
        for (int line = 0; line < kPacketBytes; line += 64) {
          __builtin_prefetch(ahead + line);
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
    if (++run == D::kFormat.group_cols / D::kRunCols) {
      run = 0;
      group += D::kFormat.group_bytes;
    }
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
  const uint8_t* slices = args.segment->data + panel * panel_bytes;
  for (int col = 0; col < args.cols; col += args.slice_cols) {
    MultiplyDecoding<V, D, kRows, kPanels>(slices, panel_bytes, args.slice_cols,
                                           args.x + col, args.x_stride,
                                           sums.top());
    sums.Push(kFloats);
    slices += args.segment->slice_bytes;
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

// Decodes columns [begin, begin + cols) of a slice to fp32, [cols, 16]. Both
// are multiples of D::kRunCols.
template <class V, class D>
void DecodeColumns(const uint8_t* slice, int begin, int cols, float* out) {
  constexpr PackedFormat kFormat = D::kFormat;
  const typename D::Constants constants = D::MakeConstants();
  const uint8_t* group =
      slice + begin / kFormat.group_cols * size_t{kFormat.group_bytes};
  int run = begin % kFormat.group_cols / D::kRunCols;
  for (int col = 0; col < cols; col += D::kRunCols) {
    for (int v = 0; v < V::kVectors; ++v) {
      const typename D::Scales scales = D::LoadScales(group, run, v);
      float* run_out = out + col * kPanelRows + v * V::kWidth;
      for (int n = 0; n < D::kRunCols / D::kPacketCols; ++n) {
        const typename D::Packet packet = D::LoadPacket(group, run, n, v);
#pragma GCC unroll 8
        for (int i = 0; i < D::kPacketCols; ++i) {
          V::Store(run_out + (n * D::kPacketCols + i) * kPanelRows,
                   D::Decode(scales, packet, i, constants));
        }
      }
    }
    if (++run == kFormat.group_cols / D::kRunCols) {
      run = 0;
      group += kFormat.group_bytes;
    }
  }
}

// F32 panels need no decoding.
struct NoDecoder {
  static constexpr PackedFormat kFormat = FormatOfPacked(PackedType::kF32);
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

// One slice of t.panels panels into t.c; `slices` is where the first panel's
// starts, x its first column of X.
template <class V, class D>
void MultiplySlice(const GemmArgs& args, const uint8_t* slices, const float* x,
                   float* weights, MatrixTile t) {
  for (int done = 0; done < args.slice_cols; done += t.k) {
    t.k = args.slice_cols - done < kBlockCols ? args.slice_cols - done
                                              : kBlockCols;
    t.x = x + done;
    t.accumulate = done > 0;
    const float* w[BlockBuffers<V>::kPanels];
    for (int p = 0; p < t.panels; ++p) {
      const uint8_t* slice = slices + p * args.segment->panel_bytes;
      if constexpr (D::kFormat.group_bytes == sizeof(float) * kPanelRows) {
        w[p] = reinterpret_cast<const float*>(slice) + done * kPanelRows;
      } else {
        float* decoded = weights + p * kBlockCols * kPanelRows;
        DecodeColumns<V, D>(slice, done, t.k, decoded);
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
      const uint8_t* slices =
          args.segment->data + panel * args.segment->panel_bytes;
      const float* x = args.x + row * args.x_stride;
      for (int col = 0; col < args.cols; col += args.slice_cols) {
        MultiplySlice<V, D>(args, slices, x + col, buffers.weights,
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
        slices += args.segment->slice_bytes;
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
    case PackedType::kF32:
      return GemmManyRows<V, NoDecoder>(args);
    case PackedType::kF16:
      return GemmOfType<V, HalfDecoder<V, PackedType::kF16>>(args);
    case PackedType::kBF16:
      return GemmOfType<V, HalfDecoder<V, PackedType::kBF16>>(args);
    case PackedType::kQ8_0:
      return GemmOfType<V, Q8Decoder<V>>(args);
    case PackedType::kQ4_0:
      return GemmOfType<V, Q4_0Decoder<V>>(args);
    case PackedType::kQ4_1:
      return GemmOfType<V, Q4_1Decoder<V>>(args);
    case PackedType::kQ5_1:
      return GemmOfType<V, Q5_1Decoder<V>>(args);
    case PackedType::kQ2_K:
      return GemmOfType<V, Q2KDecoder<V>>(args);
    case PackedType::kQ4_K:
      return GemmOfType<V, Q4KDecoder<V>>(args);
    case PackedType::kQ5_K:
      return GemmOfType<V, Q5KDecoder<V>>(args);
    case PackedType::kQ6_K:
      return GemmOfType<V, Q6KDecoder<V>>(args);
    case PackedType::kQ4_Z:
      return GemmOfType<V, Q4ZDecoder<V>>(args);
    case PackedType::kQ8_F:
      return GemmOfType<V, Q8FDecoder<V>>(args);
    case PackedType::kInt16:
      return;  // not what strict matrices hold
  }
}

}  // namespace lockstep::kernels
