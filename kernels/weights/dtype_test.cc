#include "kernels/weights/dtype.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_split.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <fstream>
#include <map>
#include <string>
#include <vector>

namespace lockstep::kernels {
namespace {

DType TypeNamed(const std::string& name) {
  for (int i = 0; i < kNumDTypes; ++i) {
    if (name == DTypeName(static_cast<DType>(i))) return static_cast<DType>(i);
  }
  ADD_FAILURE() << "no type " << name;
  return DType::kF32;
}

TEST(DTypeTest, DecodesAsTheVectorsSay) {
  std::ifstream file("kernels/weights/testdata/dequantized.txt");
  ASSERT_TRUE(file.is_open());
  std::map<std::string, int> seen;
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ');
    ASSERT_EQ(fields.size(), 3);
    const DType type = TypeNamed(fields[0]);
    const std::string row = absl::HexStringToBytes(fields[1]);
    const std::string expected = absl::HexStringToBytes(fields[2]);
    const int64_t cols = expected.size() / sizeof(float);
    ASSERT_EQ(row.size(), RowBytes(type, cols)) << fields[0];
    std::vector<float> values(cols);
    DecodeRow(type, row.data(), cols, values.data());
    for (int64_t i = 0; i < cols; ++i) {
      float value;
      std::memcpy(&value, &expected[i * sizeof(float)], sizeof(value));
      EXPECT_EQ(values[i], value) << fields[0] << " value " << i;
    }
    ++seen[fields[0]];
  }
  EXPECT_EQ(seen.size(), kNumDTypes);
}

TEST(DTypeTest, BlocksAreGgmls) {
  EXPECT_EQ(RowBytes(DType::kF32, 10), 40);
  EXPECT_EQ(RowBytes(DType::kF16, 10), 20);
  EXPECT_EQ(RowBytes(DType::kBF16, 10), 20);
  EXPECT_EQ(RowBytes(DType::kQ8_0, 64), 68);
  EXPECT_EQ(RowBytes(DType::kQ4_0, 64), 36);
  EXPECT_EQ(RowBytes(DType::kQ4_1, 64), 40);
  EXPECT_EQ(RowBytes(DType::kQ4_K, 512), 288);
  EXPECT_EQ(RowBytes(DType::kQ5_K, 512), 352);
  EXPECT_EQ(RowBytes(DType::kQ6_K, 512), 420);
  EXPECT_EQ(RowBytes(DType::kQ5_0, 64), 44);
  EXPECT_EQ(RowBytes(DType::kQ5_1, 64), 48);
  EXPECT_EQ(RowBytes(DType::kQ2_K, 512), 168);
  EXPECT_EQ(RowBytes(DType::kQ3_K, 512), 220);
  EXPECT_EQ(RowBytes(DType::kIQ4_NL, 64), 36);
  EXPECT_EQ(RowBytes(DType::kIQ4_XS, 512), 272);
  EXPECT_EQ(RowBytes(DType::kMXFP4, 64), 34);
}

TEST(DTypeTest, NotANumberInEightBitsStaysOne) {
  const uint8_t bits[] = {0x7f, 0xff};
  float values[2];
  DecodeRow(DType::kF8_E4M3, bits, 2, values);
  EXPECT_TRUE(std::isnan(values[0]) && std::isnan(values[1]));
}

// By the definition of binary16: sign, 5 bits of exponent, 10 of mantissa.
float HalfByDefinition(uint16_t half) {
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  float magnitude;
  if (exponent == 31) {
    magnitude = mantissa == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    magnitude = std::ldexp(mantissa, -24);
  } else {
    magnitude = std::ldexp(1024 + mantissa, exponent - 25);
  }
  return half & 0x8000 ? -magnitude : magnitude;
}

TEST(DTypeTest, EveryHalfConvertsExactly) {
  for (int bits = 0; bits < 0x10000; ++bits) {
    const float expected = HalfByDefinition(bits);
    const float value = HalfToFloat(bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value)) << bits;
    } else {
      EXPECT_EQ(FloatToHalf(value), bits);
      EXPECT_EQ(std::bit_cast<uint32_t>(value),
                std::bit_cast<uint32_t>(expected))
          << bits;
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
