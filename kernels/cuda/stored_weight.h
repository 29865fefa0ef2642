#pragma once

#include <cstdint>

#include "kernels/cuda/cuda_types.h"
#include "kernels/cuda/device.h"
#include "kernels/weights/dtype.h"

// Value i of a block of weights, as kernels/weights/dtype.h writes it down, and
// to the bit as kernels::DecodeRow has it. Blocks lie at multiples of two bytes
// at best, those of an odd length anywhere.
namespace lockstep::cuda {

// IEEE binary16, exact.
__device__ inline float HalfOf(uint32_t half) {
  const uint32_t sign = (half & 0x8000) << 16, magnitude = half & 0x7fff;
  if (magnitude >= 0x7c00) {  // infinity, NaN
    return __uint_as_float(sign | 0x7f800000 | (magnitude & 0x3ff) << 13);
  }
  // The bits moved into place read as value·2^-112, also when subnormal.
  const float value = __uint_as_float(magnitude << 13) * 0x1p112f;
  return __uint_as_float(sign | __float_as_uint(value));
}

// Of an even address.
__device__ inline float HalfAt(const uint8_t* bytes) {
  return HalfOf(*reinterpret_cast<const uint16_t*>(bytes));
}

// Value i of 32: the low halves of 16 bytes, then the high ones.
__device__ inline int Nibble(const uint8_t* nibbles, int i) {
  const int byte = nibbles[i % 16];
  return i < 16 ? byte & 15 : byte >> 4;
}

__device__ inline int Bit(const uint8_t* bits, int i) {
  return bits[i / 8] >> i % 8 & 1;
}

// Two bits of value i of 256: 32 bytes hold four runs of 32.
__device__ inline int Pair(const uint8_t* pairs, int i) {
  return pairs[i / 128 * 32 + i % 32] >> i / 32 % 4 * 2 & 3;
}

// The types without blocks are blocks of one value.
struct F32Value {
  static constexpr int kValues = 1;
  static constexpr int kBytes = 4;

  __device__ static float Value(const uint8_t* value, int /*i*/) {
    return *reinterpret_cast<const float*>(value);
  }
};

struct F16Value {
  static constexpr int kValues = 1;
  static constexpr int kBytes = 2;

  __device__ static float Value(const uint8_t* value, int /*i*/) {
    return HalfAt(value);
  }
};

struct BF16Value {
  static constexpr int kValues = 1;
  static constexpr int kBytes = 2;

  __device__ static float Value(const uint8_t* value, int /*i*/) {
    const uint32_t bits = *reinterpret_cast<const uint16_t*>(value);
    return __uint_as_float(bits << 16);
  }
};

struct Q8_0Block {
  static constexpr int kValues = 32;
  static constexpr int kBytes = 34;

  __device__ static float Value(const uint8_t* block, int i) {
    return HalfAt(block) * static_cast<int8_t>(block[2 + i]);
  }
};

struct Q4_0Block {
  static constexpr int kValues = 32;
  static constexpr int kBytes = 18;

  __device__ static float Value(const uint8_t* block, int i) {
    return HalfAt(block) * static_cast<float>(Nibble(block + 2, i) - 8);
  }
};

// d and m, 16 bytes of nibbles.
struct Q4_1Block {
  static constexpr int kValues = 32;
  static constexpr int kBytes = 20;

  __device__ static float Value(const uint8_t* block, int i) {
    return fmaf(HalfAt(block), static_cast<float>(Nibble(block + 4, i)),
                HalfAt(block + 2));
  }
};

struct Q5_0Block {
  static constexpr int kValues = 32;
  static constexpr int kBytes = 22;

  __device__ static float Value(const uint8_t* block, int i) {
    const int quant = Nibble(block + 6, i) | Bit(block + 2, i) << 4;
    return HalfAt(block) * static_cast<float>(quant - 16);
  }
};

struct Q5_1Block {
  static constexpr int kValues = 32;
  static constexpr int kBytes = 24;

  __device__ static float Value(const uint8_t* block, int i) {
    const int quant = Nibble(block + 8, i) | Bit(block + 4, i) << 4;
    return fmaf(HalfAt(block), static_cast<float>(quant), HalfAt(block + 2));
  }
};

// Q4_K and Q5_K, which has a fifth bit of each value: see quant_block.cc.
template <bool kHasFifthBits>
struct FourOrFiveBits {
  static constexpr int kValues = 256;
  static constexpr int kBytes = kHasFifthBits ? 176 : 144;

  __device__ static float Value(const uint8_t* block, int i) {
    const int run = i / 32;
    const uint8_t* packed = block + 4;
    int scale = 0, min = 0;  // six bits each: see kernels::UnpackScales6
    if (run < 4) {
      scale = packed[run] & 63;
      min = packed[4 + run] & 63;
    } else {
      scale = (packed[4 + run] & 15) | packed[run - 4] >> 6 << 4;
      min = packed[4 + run] >> 4 | packed[run] >> 6 << 4;
    }
    const uint8_t* high = block + 16;
    const uint8_t* nibbles = kHasFifthBits ? high + 32 : high;
    const int byte = nibbles[run / 2 * 32 + i % 32];
    int quant = run % 2 == 0 ? byte & 15 : byte >> 4;
    if (kHasFifthBits) quant |= (high[i % 32] >> run & 1) << 4;
    return fmaf(HalfAt(block) * scale, static_cast<float>(quant),
                -(HalfAt(block + 2) * min));
  }
};

using Q4_KBlock = FourOrFiveBits<false>;
using Q5_KBlock = FourOrFiveBits<true>;

struct Q6_KBlock {
  static constexpr int kValues = 256;
  static constexpr int kBytes = 210;

  __device__ static float Value(const uint8_t* block, int i) {
    const int half = i / 128, part = i / 32 % 4;
    const int byte = block[64 * half + 32 * (part % 2) + i % 32];
    const int nibble = part < 2 ? byte & 15 : byte >> 4;
    const int pair = block[128 + 32 * half + i % 32] >> 2 * part & 3;
    const auto scale = static_cast<int8_t>(block[192 + i / 16]);
    return HalfAt(block + 208) * scale *
           static_cast<float>((nibble | pair << 4) - 32);
  }
};

struct Q2_KBlock {
  static constexpr int kValues = 256;
  static constexpr int kBytes = 84;

  __device__ static float Value(const uint8_t* block, int i) {
    const int scales = block[i / 16];
    return fmaf(HalfAt(block + 80) * (scales & 15),
                static_cast<float>(Pair(block + 16, i)),
                -(HalfAt(block + 82) * (scales >> 4)));
  }
};

struct Q3_KBlock {
  static constexpr int kValues = 256;
  static constexpr int kBytes = 110;

  __device__ static float Value(const uint8_t* block, int i) {
    const uint8_t* packed = block + 96;  // see kernels::UnpackScalesQ3K
    const int run = i / 16;
    const int low = packed[run % 8] >> run / 8 * 4 & 15;
    const int high = packed[8 + run % 4] >> run / 4 * 2 & 3;
    const int bit = block[i % 32] >> i / 32 & 1;
    return HalfAt(block + 108) * ((low | high << 4) - 32) *
           static_cast<float>(Pair(block + 32, i) - (bit == 1 ? 0 : 4));
  }
};

// One of sixteen numbers of eight bits, the first lowest: from registers, where
// a table would be read from memory.
__device__ inline int ByteOf(uint64_t first_eight, uint64_t last_eight, int i) {
  return static_cast<int8_t>((i < 8 ? first_eight : last_eight) >> i % 8 * 8);
}

// -127, -104, -83, -65, -49, -35, -22, -10; 1, 13, 25, 38, 53, 69, 89, 113.
__device__ inline int Iq4Value(int nibble) {
  return ByteOf(0xf6eaddcfbfad9881, 0x7159453526190d01, nibble);
}

// 0, 1, 2, 3, 4, 6, 8, 12, and the same below zero.
__device__ inline int Mxfp4Value(int nibble) {
  return ByteOf(0x0c08060403020100, 0xf4f8fafcfdfeff00, nibble);
}

struct IQ4_NLBlock {
  static constexpr int kValues = 32;
  static constexpr int kBytes = 18;

  __device__ static float Value(const uint8_t* block, int i) {
    return HalfAt(block) * static_cast<float>(Iq4Value(Nibble(block + 2, i)));
  }
};

struct IQ4_XSBlock {
  static constexpr int kValues = 256;
  static constexpr int kBytes = 136;

  __device__ static float Value(const uint8_t* block, int i) {
    const int run = i / 32;
    const int low = block[4 + run / 2] >> run % 2 * 4 & 15;
    const int high = block[2 + run / 4] >> run % 4 * 2 & 3;
    const int quant = Iq4Value(Nibble(block + 8 + 16 * run, i % 32));
    return HalfAt(block) * ((low | high << 4) - 32) * static_cast<float>(quant);
  }
};

struct MXFP4Block {
  static constexpr int kValues = 32;
  static constexpr int kBytes = 17;

  __device__ static float Value(const uint8_t* block, int i) {
    // 2^(e - 128), also where that is subnormal.
    const uint32_t e = block[0];
    const float scale =
        __uint_as_float(e < 2 ? 0x00200000u << e : (e - 1) << 23);
    return scale * static_cast<float>(Mxfp4Value(Nibble(block + 1, i)));
  }
};

struct Q4_ZBlock {
  static constexpr int kValues = 32;
  static constexpr int kBytes = 19;

  __device__ static float Value(const uint8_t* block, int i) {
    const float d = HalfOf(block[0] | block[1] << 8);
    return fmaf(d, static_cast<float>(Nibble(block + 3, i)), -(d * block[2]));
  }
};

struct Q8_FBlock {
  static constexpr int kValues = 32;
  static constexpr int kBytes = 36;

  __device__ static float Value(const uint8_t* block, int i) {
    return *reinterpret_cast<const float*>(block) *
           static_cast<int8_t>(block[4 + i]);
  }
};

// launch(Block()) with the block of a type that is not plain.
template <typename Launch>
CudaError WithStoredBlock(kernels::DType type, const Launch& launch) {
  switch (type) {
    case kernels::DType::kQ8_0:
      return launch(Q8_0Block());
    case kernels::DType::kQ4_0:
      return launch(Q4_0Block());
    case kernels::DType::kQ4_1:
      return launch(Q4_1Block());
    case kernels::DType::kQ4_K:
      return launch(Q4_KBlock());
    case kernels::DType::kQ5_K:
      return launch(Q5_KBlock());
    case kernels::DType::kQ6_K:
      return launch(Q6_KBlock());
    case kernels::DType::kQ5_0:
      return launch(Q5_0Block());
    case kernels::DType::kQ5_1:
      return launch(Q5_1Block());
    case kernels::DType::kQ2_K:
      return launch(Q2_KBlock());
    case kernels::DType::kQ3_K:
      return launch(Q3_KBlock());
    case kernels::DType::kIQ4_NL:
      return launch(IQ4_NLBlock());
    case kernels::DType::kIQ4_XS:
      return launch(IQ4_XSBlock());
    case kernels::DType::kMXFP4:
      return launch(MXFP4Block());
    case kernels::DType::kQ4_Z:
      return launch(Q4_ZBlock());
    case kernels::DType::kQ8_F:
      return launch(Q8_FBlock());
    default:
      return kCudaInvalidValue;
  }
}

// The same of a plain type.
template <typename Launch>
CudaError WithPlainValue(kernels::DType type, const Launch& launch) {
  switch (type) {
    case kernels::DType::kF32:
      return launch(F32Value());
    case kernels::DType::kF16:
      return launch(F16Value());
    case kernels::DType::kBF16:
      return launch(BF16Value());
    default:
      return kCudaInvalidValue;
  }
}

}  // namespace lockstep::cuda
