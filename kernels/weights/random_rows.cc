#include "kernels/weights/random_rows.h"

#include <cstring>

namespace lockstep::kernels {
namespace {

// 2^-9 … 2^-6, any mantissa, either sign.
void SetHalf(uint8_t* out, std::mt19937& random) {
  const uint16_t half =
      (random() & 0x3ff) | (6 + random() % 3) << 10 | (random() & 1) << 15;
  std::memcpy(out, &half, sizeof(half));
}

void MakeModerate(DType type, uint8_t* block, std::mt19937& random) {
  switch (type) {
    case DType::kF32: {
      const float value = std::normal_distribution<float>()(random);
      std::memcpy(block, &value, sizeof(value));
      break;
    }
    case DType::kBF16:
      block[1] = (block[1] & 0x80) | 0x3e;
      break;
    case DType::kQ6_K:
      SetHalf(block + 208, random);
      break;
    case DType::kQ3_K:
      SetHalf(block + 108, random);
      break;
    case DType::kQ2_K:
      SetHalf(block + 80, random);
      SetHalf(block + 82, random);
      break;
    case DType::kQ8_F: {
      const float value = std::normal_distribution<float>(0, 0x1p-8f)(random);
      std::memcpy(block, &value, sizeof(value));
      break;
    }
    case DType::kMXFP4:  // 2^-12 … 2^-9
      block[0] = 116 + random() % 4;
      break;
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      SetHalf(block + 2, random);
      SetHalf(block, random);
      break;
    default:
      SetHalf(block, random);
      break;
  }
}

}  // namespace

std::vector<uint8_t> RandomRows(DType type, int rows, int cols,
                                std::mt19937& random) {
  std::vector<uint8_t> bytes(rows * RowBytes(type, cols));
  for (uint8_t& byte : bytes) byte = random() & 255;
  for (size_t at = 0; at < bytes.size(); at += BlockBytes(type)) {
    MakeModerate(type, &bytes[at], random);
  }
  return bytes;
}

}  // namespace lockstep::kernels
