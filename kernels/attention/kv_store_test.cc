#include "kernels/attention/kv_store.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/attention/kv_type.h"

namespace lockstep::kernels {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

TEST(EncodeKv, RoundsToTheNearestBFloat16TiesToEven) {
  // Neighbours are 2^-7 apart.
  const std::vector<float> x = {
      1,       1 + 0x1p-8f, 1 + 0x1.8p-7f, 1 + 0x1.02p-8f, -1 - 0x1.8p-7f,
      3.39e38f, kInfinity,   -kInfinity};
  const std::vector<float> expected = {
      1,           1,         1 + 0x1p-6f, 1 + 0x1p-7f, -1 - 0x1p-6f,
      0x1.fep127f, kInfinity, -kInfinity};
  std::vector<uint16_t> stored(x.size());
  EncodeKv(KvType::kBF16, x.data(), x.size(), stored.data(), 1, nullptr);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(DecodeKv(KvType::kBF16, stored.data(), i), expected[i]) << x[i];
  }
}

TEST(EncodeKv, ABFloat16NaNStaysOne) {
  // Its mantissa is in the half that is cut off.
  const float x = std::bit_cast<float>(0x7f800001);
  uint16_t stored;
  EncodeKv(KvType::kBF16, &x, 1, &stored, 1, nullptr);
  EXPECT_TRUE(std::isnan(DecodeKv(KvType::kBF16, &stored, 0)));
}

TEST(EncodeKv, ScalesIntegersByTheLargestMagnitude) {
  const std::vector<float> x = {0, 254, -254, 3, 1, -2.2f};
  const std::vector<float> expected = {0, 127, -127, 2, 0, -1};
  std::vector<int8_t> stored(x.size());
  float scale;
  EncodeKv(KvType::kInt8, x.data(), x.size(), stored.data(), 1, &scale);
  EXPECT_EQ(scale, 2);
  for (size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(DecodeKv(KvType::kInt8, stored.data(), i), expected[i]) << x[i];
  }
}

TEST(EncodeKv, AVectorTooSmallToDivideByIsZero) {
  for (const float value : {0.0f, -0.0f, 1e-31f, 1e-40f}) {
    const std::vector<float> x(3, value);
    std::vector<int8_t> stored(x.size(), 5);
    float scale;
    EncodeKv(KvType::kInt8, x.data(), x.size(), stored.data(), 1, &scale);
    EXPECT_EQ(scale, 0);
    EXPECT_EQ(stored, std::vector<int8_t>(x.size(), 0));
  }
}

TEST(EncodeKv, AnIntegerVectorThatIsNotFiniteIsNaN) {
  for (const float bad : {std::nanf(""), kInfinity, -kInfinity}) {
    const std::vector<float> x = {1, bad, 2};
    std::vector<int8_t> stored(x.size());
    float scale;
    EncodeKv(KvType::kInt8, x.data(), x.size(), stored.data(), 1, &scale);
    EXPECT_TRUE(std::isnan(scale));
  }
}

TEST(EncodeKv, WritesEveryStridethElementAlone) {
  const std::vector<float> x = {1, 2};
  std::vector<float> stored(5, 7);
  EncodeKv(KvType::kF32, x.data(), x.size(), stored.data(), 3, nullptr);
  EXPECT_EQ(stored, (std::vector<float>{1, 7, 7, 2, 7}));
}

}  // namespace
}  // namespace lockstep::kernels
