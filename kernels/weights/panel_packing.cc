#include "kernels/weights/panel_packing.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "kernels/weights/quant_block.h"

namespace lockstep::kernels {
namespace {

constexpr int kBlockCols = 32;
constexpr int kQuads = kBlockCols / 4;

template <typename T>
T Load(const uint8_t* bytes, int index = 0) {
  T value;
  std::memcpy(&value, bytes + index * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void Store(uint8_t* bytes, int index, T value) {
  std::memcpy(bytes + index * sizeof(T), &value, sizeof(T));
}

void Store16(uint8_t* bytes, int index, const uint8_t* from) {
  Store(bytes, index, Load<uint16_t>(from));
}

// The integers of a block of 32 columns of one row, four to a word.
struct Quads {
  uint32_t word[kQuads];
};

void StoreNibbles(const Quads& low, int row, uint8_t* nibbles) {
  for (int h = 0; h < 4; ++h) {
    Store(nibbles, h * kPanelRows + row,
          low.word[2 * h] | low.word[2 * h + 1] << 4);
  }
}

// Signed bytes.
void StoreBytes(const uint8_t* quants, int row, uint8_t* words) {
  for (int g = 0; g < kQuads; ++g) {
    Store(words, g * kPanelRows + row, Load<uint32_t>(quants, g) ^ 0x80808080);
  }
}

// The scale that a block begins with, and its signed bytes.
void StoreQ8_0(const uint8_t* block, const uint8_t* quants, int row,
               uint8_t* group) {
  Store16(group, row, block);
  StoreBytes(quants, row,
             group + FormatOfPacked(PackedType::kQ8_0).header_bytes);
}

// Of ggml's Q4_0 and Q4_1: 16 bytes, columns 0-15 in the low halves.
Quads NibblesOfHalves(const uint8_t* bytes) {
  Quads quads;
  for (int g = 0; g < 4; ++g) {
    const uint32_t word = Load<uint32_t>(bytes, g);
    quads.word[g] = word & 0x0f0f0f0f;
    quads.word[4 + g] = word >> 4 & 0x0f0f0f0f;
  }
  return quads;
}

Quads Masked(Quads quads, int shift, uint32_t mask) {
  for (uint32_t& word : quads.word) word = word >> shift & mask;
  return quads;
}

// Of ggml's K types: the same bits of 32 bytes.
Quads BitsOfBytes(const uint8_t* bytes, int shift, uint32_t mask) {
  return Masked(Load<Quads>(bytes), shift, mask);
}

// One function per quantized type: a stored block of one row to its place in a
// group.
using PackBlock = void (*)(const uint8_t* block, int row, uint8_t* group);

void PackQ8_0(const uint8_t* block, int row, uint8_t* group) {
  StoreQ8_0(block, block + 2, row, group);
}

void PackQ4_0(const uint8_t* block, int row, uint8_t* group) {
  Store16(group, row, block);
  StoreNibbles(NibblesOfHalves(block + 2), row,
               group + FormatOfPacked(PackedType::kQ4_0).header_bytes);
}

void PackQ4_1(const uint8_t* block, int row, uint8_t* group) {
  Store16(group, row, block);
  Store16(group, kPanelRows + row, block + 2);
  StoreNibbles(NibblesOfHalves(block + 4), row,
               group + FormatOfPacked(PackedType::kQ4_1).header_bytes);
}

void PackQ4_Z(const uint8_t* block, int row, uint8_t* group) {
  Store16(group, row, block);
  group[2 * kPanelRows + row] = block[2];
  StoreNibbles(NibblesOfHalves(block + 3), row,
               group + FormatOfPacked(PackedType::kQ4_Z).header_bytes);
}

void PackQ8_F(const uint8_t* block, int row, uint8_t* group) {
  Store(group, row, Load<float>(block));
  StoreBytes(block + sizeof(float), row,
             group + FormatOfPacked(PackedType::kQ8_F).header_bytes);
}

// Fifth bits, one word of a row.
void StoreBits(const Quads& bits, int row, uint8_t* words) {
  uint32_t word = 0;
  for (int g = 0; g < kQuads; ++g) word |= bits.word[g] << g;
  Store(words, row, word);
}

// Pairs of bits, two words of a row.
void StorePairs(const Quads& pairs, int row, uint8_t* words) {
  for (int h = 0; h < 2; ++h) {
    uint32_t word = 0;
    for (int n = 0; n < 4; ++n) word |= pairs.word[4 * h + n] << (2 * n);
    Store(words, h * kPanelRows + row, word);
  }
}

void PackQ5_1(const uint8_t* block, int row, uint8_t* group) {
  Store16(group, row, block);
  Store16(group, kPanelRows + row, block + 2);
  uint8_t* words = group + FormatOfPacked(PackedType::kQ5_1).header_bytes;
  StoreNibbles(NibblesOfHalves(block + 8), row, words);
  const uint32_t stored = Load<uint32_t>(block + 4);
  Quads bits;
  for (int g = 0; g < kQuads; ++g) {
    const uint32_t four = stored >> (4 * g) & 15;
    // Bit j to the lowest of byte j.
    bits.word[g] = four * 0x00204081 & 0x01010101;
  }
  StoreBits(bits, row, words + 16 * kPanelRows);
}

// Runs of 32 columns as in quant_block.cc; two scales and minima each.
void PackQ2K(const uint8_t* block, int row, uint8_t* group) {
  constexpr PackedFormat kFormat = FormatOfPacked(PackedType::kQ2_K);
  Store16(group, row, block + 80);
  Store16(group, kPanelRows + row, block + 82);
  uint8_t* out = group + kFormat.header_bytes;
  for (int run = 0; run < 8; ++run) {
    for (int h = 0; h < 2; ++h) {
      const uint8_t both = block[2 * run + h];
      out[h * kPanelRows + row] = both & 15;
      out[(2 + h) * kPanelRows + row] = both >> 4;
    }
    StorePairs(
        BitsOfBytes(block + 16 + 32 * (run / 4), 2 * (run % 4), 0x03030303),
        row, out + 4 * kPanelRows);
    out += kFormat.block_bytes();
  }
}

template <bool kFiveBits>
void PackQ4KOrQ5K(const uint8_t* block, int row, uint8_t* group) {
  constexpr PackedFormat kFormat =
      FormatOfPacked(kFiveBits ? PackedType::kQ5_K : PackedType::kQ4_K);
  Store16(group, row, block);
  Store16(group, kPanelRows + row, block + 2);
  uint8_t scales[8], mins[8];
  UnpackScales6(block + 4, scales, mins);
  const uint8_t* high = block + 16;
  const uint8_t* nibbles = kFiveBits ? high + 32 : high;
  uint8_t* out = group + kFormat.header_bytes;
  for (int run = 0; run < 8; ++run) {
    out[row] = scales[run];
    out[kPanelRows + row] = mins[run];
    uint8_t* words = out + 2 * kPanelRows;
    StoreNibbles(
        BitsOfBytes(nibbles + 32 * (run / 2), 4 * (run % 2), 0x0f0f0f0f), row,
        words);
    if constexpr (kFiveBits) {
      StoreBits(BitsOfBytes(high, run, 0x01010101), row,
                words + 16 * kPanelRows);
    }
    out += kFormat.block_bytes();
  }
}

// A type of 8 bits at most and one scale, which its block begins with.
template <DType kType>
void PackAsQ8_0(const uint8_t* block, int row, uint8_t* group) {
  QuantBlock unpacked;
  UnpackBlock(kType, block, &unpacked);
  StoreQ8_0(block, reinterpret_cast<const uint8_t*>(unpacked.quant), row,
            group);
}

// A type of 8 bits at most whose runs of 32 have a scale each.
template <DType kType>
void PackAsQ8_F(const uint8_t* block, int row, uint8_t* group) {
  constexpr PackedFormat kFormat = FormatOfPacked(PackedType::kQ8_F);
  QuantBlock unpacked;
  UnpackBlock(kType, block, &unpacked);
  const auto* quants = reinterpret_cast<const uint8_t*>(unpacked.quant);
  for (int run = 0; run < BlockValues(kType) / kBlockCols; ++run) {
    Store(group, row, unpacked.scale[run]);
    StoreBytes(quants + run * kBlockCols, row, group + kFormat.header_bytes);
    group += kFormat.group_bytes;
  }
}

// Integers of a block of Q3_K plus 32, as Q6_K has them.
Quads SixBits(const int8_t* quant) {
  Quads quads;
  for (int g = 0; g < kQuads; ++g) {
    quads.word[g] = 0;
    for (int j = 0; j < 4; ++j) {
      quads.word[g] |= static_cast<uint32_t>(quant[4 * g + j] + 32) << (8 * j);
    }
  }
  return quads;
}

void PackQ3K(const uint8_t* block, int row, uint8_t* group) {
  constexpr PackedFormat kFormat = FormatOfPacked(PackedType::kQ6_K);
  QuantBlock unpacked;
  UnpackBlock(DType::kQ3_K, block, &unpacked);
  int8_t scales[16];
  UnpackScalesQ3K(block + 96, scales);
  Store16(group, row, block + 108);
  uint8_t* out = group + kFormat.header_bytes;
  for (int run = 0; run < 8; ++run) {
    Store(out, row, scales[2 * run]);
    Store(out, kPanelRows + row, scales[2 * run + 1]);
    const Quads quads = SixBits(unpacked.quant + 32 * run);
    uint8_t* words = out + 2 * kPanelRows;
    StoreNibbles(Masked(quads, 0, 0x0f0f0f0f), row, words);
    StorePairs(Masked(quads, 4, 0x03030303), row, words + 16 * kPanelRows);
    out += kFormat.block_bytes();
  }
}

// Parts of 32 columns as in quant_block.cc.
void PackQ6K(const uint8_t* block, int row, uint8_t* group) {
  constexpr PackedFormat kFormat = FormatOfPacked(PackedType::kQ6_K);
  Store16(group, row, block + 208);
  uint8_t* out = group + kFormat.header_bytes;
  for (int run = 0; run < 8; ++run) {
    const int half = run / 4, part = run % 4;
    out[row] = block[192 + 2 * run];
    out[kPanelRows + row] = block[192 + 2 * run + 1];
    uint8_t* words = out + 2 * kPanelRows;
    StoreNibbles(BitsOfBytes(block + 64 * half + 32 * (part % 2),
                             4 * (part / 2), 0x0f0f0f0f),
                 row, words);
    StorePairs(BitsOfBytes(block + 128 + 32 * half, 2 * part, 0x03030303), row,
               words + 16 * kPanelRows);
    out += kFormat.block_bytes();
  }
}

template <PackedType kPacked, PackBlock kPackBlock>
void PackBlocks(const StoredRows& rows, int cols, uint8_t* panel) {
  const int block_cols = BlockValues(rows.type);
  const int blocks = cols / block_cols;
  const size_t block_bytes = BlockBytes(rows.type);
  for (int b = 0; b < blocks; ++b) {
    const uint8_t* source = rows.first + b * block_bytes;
    for (int row = 0; row < rows.count; ++row, source += rows.row_bytes) {
      kPackBlock(source, row, panel);
    }
    panel += SliceBytes(kPacked, block_cols);
  }
}

template <typename Word>
void PackPlain(const StoredRows& rows, int cols, uint8_t* panel) {
  // A cache line of each row at a time.
  constexpr int kCols = 64 / sizeof(Word);
  for (int begin = 0; begin < cols; begin += kCols) {
    const int end = std::min(begin + kCols, cols);
    for (int row = 0; row < rows.count; ++row) {
      const uint8_t* source = rows.first + row * rows.row_bytes;
      for (int col = begin; col < end; ++col) {
        Store(panel + static_cast<size_t>(col) * kPanelRows * sizeof(Word), row,
              Load<Word>(source, col));
      }
    }
  }
}

constexpr float kMostInt16 = 8191;
constexpr float kLeastMagnitude = 1e-30f;
constexpr int32_t kMagnitude = 0x7fffffff;
constexpr uint32_t kInfinity = 0x7f800000;
constexpr uint16_t kBFloat16NaN = 0x7fc0;
// x + kRounder has the integer that is nearest to x in its low bits, where |x|
// is below 2^22.
constexpr float kRounder = 0x1.8p23f;
constexpr uint32_t kRounderBits = std::bit_cast<uint32_t>(kRounder);

// Plain weights that are packed as integers pass through fp32, where those that
// are not finite need not keep their kind. Loops of a fixed length become
// vector instructions.
float ToFloat(uint32_t bits) { return std::bit_cast<float>(bits); }

void DecodeBlock(const uint32_t* stored, DType, float* values) {
  for (int i = 0; i < kBlockCols; ++i) values[i] = ToFloat(stored[i]);
}

void DecodeBlock(const uint16_t* stored, DType type, float* values) {
  if (type == DType::kBF16) {
    for (int i = 0; i < kBlockCols; ++i) {
      values[i] = ToFloat(static_cast<uint32_t>(stored[i]) << 16);
    }
    return;
  }
  // As HalfToFloat does; infinities and NaNs come out as 2^16 and more.
  for (int i = 0; i < kBlockCols; ++i) {
    const uint32_t sign = static_cast<uint32_t>(stored[i] & 0x8000) << 16;
    const uint32_t magnitude = static_cast<uint32_t>(stored[i] & 0x7fff) << 13;
    const float value = ToFloat(magnitude) * 0x1p112f;
    const uint32_t bits = std::bit_cast<uint32_t>(value) | sign;
    values[i] = ToFloat(value < 0x1p16f ? bits : kInfinity);
  }
}

// max|w|; infinite or NaN if one is.
float LargestMagnitude(const float* values) {
  int32_t most = 0;
  for (int i = 0; i < kBlockCols; ++i) {
    most = std::max(most, std::bit_cast<int32_t>(values[i]) & kMagnitude);
  }
  return std::bit_cast<float>(most);
}

struct Int16Scale {
  uint16_t bits;  // bfloat16
  float inverse;  // what weights are multiplied by
};

Int16Scale ScaleFor(float most) {
  if (std::bit_cast<uint32_t>(most) >= kInfinity) return {kBFloat16NaN, 0};
  if (most < kLeastMagnitude) return {0, 0};
  const uint32_t bits = std::bit_cast<uint32_t>(most / kMostInt16);
  const uint16_t up = static_cast<uint16_t>((bits + 0xffff) >> 16);
  return {up, 1 / BFloat16ToFloat(up)};
}

template <typename Word>
void PackInt16Block(const Word* stored, DType type, int row, uint8_t* group) {
  float values[kBlockCols];
  DecodeBlock(stored, type, values);
  const Int16Scale scale = ScaleFor(LargestMagnitude(values));
  Store(group, row, scale.bits);
  uint32_t quants[kBlockCols];
  for (int i = 0; i < kBlockCols; ++i) {
    quants[i] = std::bit_cast<uint32_t>(values[i] * scale.inverse + kRounder) -
                kRounderBits;
  }
  uint8_t* out = group + FormatOfPacked(PackedType::kInt16).header_bytes;
  for (int n = 0; n < kBlockCols / 2; ++n) {
    Store(out, n * kPanelRows + row,
          (quants[2 * n] & 0xffff) | quants[2 * n + 1] << 16);
  }
}

template <typename Word>
void PackInt16(const StoredRows& rows, int cols, int slice_cols,
               uint8_t* panel) {
  for (int slice = 0; slice < cols; slice += slice_cols) {
    for (int begin = 0; begin < slice_cols; begin += kBlockCols) {
      const int count = std::min(kBlockCols, slice_cols - begin);
      const uint8_t* source = rows.first + (slice + begin) * sizeof(Word);
      Word stored[kBlockCols] = {};
      for (int row = 0; row < rows.count; ++row, source += rows.row_bytes) {
        std::memcpy(stored, source, count * sizeof(Word));
        PackInt16Block(stored, rows.type, row, panel);
      }
      panel += FormatOfPacked(PackedType::kInt16).group_bytes;
    }
  }
}

// Rows of a type without a layout of its own, in fp32.
class DecodedRows {
 public:
  DecodedRows(const StoredRows& rows, int cols)
      : values_(static_cast<size_t>(rows.count) * cols) {
    for (int row = 0; row < rows.count; ++row) {
      DecodeRow(rows.type, rows.first + row * rows.row_bytes, cols,
                values_.data() + static_cast<size_t>(row) * cols);
    }
    view_ = {DType::kF32, reinterpret_cast<const uint8_t*>(values_.data()),
             cols * sizeof(float), rows.count};
  }

  const StoredRows& view() const { return view_; }

 private:
  std::vector<float> values_;
  StoredRows view_;
};

}  // namespace

void PackPanel(PackedType type, const StoredRows& rows, int cols,
               int slice_cols, uint8_t* panel) {
  const bool plain =
      FormatOfPacked(type).group_cols == 1 || type == PackedType::kInt16;
  if (plain && !IsPlain(rows.type)) {
    const DecodedRows decoded(rows, cols);
    return PackPanel(type, decoded.view(), cols, slice_cols, panel);
  }
  if (rows.count < kPanelRows) {
    std::memset(panel, 0, SliceBytes(type, slice_cols) * (cols / slice_cols));
  }
  switch (type) {
    case PackedType::kF32:
      return PackPlain<uint32_t>(rows, cols, panel);
    case PackedType::kF16:
    case PackedType::kBF16:
      return PackPlain<uint16_t>(rows, cols, panel);
    case PackedType::kQ8_0:
      if (rows.type == DType::kQ5_0) {
        return PackBlocks<PackedType::kQ8_0, PackAsQ8_0<DType::kQ5_0>>(
            rows, cols, panel);
      }
      if (rows.type == DType::kIQ4_NL) {
        return PackBlocks<PackedType::kQ8_0, PackAsQ8_0<DType::kIQ4_NL>>(
            rows, cols, panel);
      }
      return PackBlocks<PackedType::kQ8_0, PackQ8_0>(rows, cols, panel);
    case PackedType::kQ4_0:
      return PackBlocks<PackedType::kQ4_0, PackQ4_0>(rows, cols, panel);
    case PackedType::kQ4_1:
      return PackBlocks<PackedType::kQ4_1, PackQ4_1>(rows, cols, panel);
    case PackedType::kQ5_1:
      return PackBlocks<PackedType::kQ5_1, PackQ5_1>(rows, cols, panel);
    case PackedType::kQ2_K:
      return PackBlocks<PackedType::kQ2_K, PackQ2K>(rows, cols, panel);
    case PackedType::kQ4_K:
      return PackBlocks<PackedType::kQ4_K, PackQ4KOrQ5K<false>>(rows, cols,
                                                                panel);
    case PackedType::kQ5_K:
      return PackBlocks<PackedType::kQ5_K, PackQ4KOrQ5K<true>>(rows, cols,
                                                               panel);
    case PackedType::kQ6_K:
      if (rows.type == DType::kQ3_K) {
        return PackBlocks<PackedType::kQ6_K, PackQ3K>(rows, cols, panel);
      }
      return PackBlocks<PackedType::kQ6_K, PackQ6K>(rows, cols, panel);
    case PackedType::kQ4_Z:
      return PackBlocks<PackedType::kQ4_Z, PackQ4_Z>(rows, cols, panel);
    case PackedType::kQ8_F:
      if (rows.type == DType::kIQ4_XS) {
        return PackBlocks<PackedType::kQ8_F, PackAsQ8_F<DType::kIQ4_XS>>(
            rows, cols, panel);
      }
      if (rows.type == DType::kMXFP4) {
        return PackBlocks<PackedType::kQ8_F, PackAsQ8_F<DType::kMXFP4>>(
            rows, cols, panel);
      }
      return PackBlocks<PackedType::kQ8_F, PackQ8_F>(rows, cols, panel);
    case PackedType::kInt16:
      return rows.type == DType::kF32
                 ? PackInt16<uint32_t>(rows, cols, slice_cols, panel)
                 : PackInt16<uint16_t>(rows, cols, slice_cols, panel);
  }
}

}  // namespace lockstep::kernels
