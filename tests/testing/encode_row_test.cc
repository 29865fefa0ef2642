#include "tests/testing/encode_row.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lockstep::testing {
namespace {

using kernels::DType;

TEST(EncodeRow, DecodesToWithinAStepOfTheType) {
  struct Case {
    DType type;
    double step;  // of values in [-1, 1]
  };
  const Case cases[] = {{DType::kF32, 0},         {DType::kF16, 0x1p-12},
                        {DType::kBF16, 0x1p-9},   {DType::kQ8_0, 1. / 127},
                        {DType::kQ4_0, 1.01 / 8}, {DType::kQ4_1, 2. / 15},
                        {DType::kQ4_K, 2.2 / 15}, {DType::kQ5_K, 2.2 / 31},
                        {DType::kQ6_K, 1.1 / 31}};
  std::vector<float> values(512);
  for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(0.7 * i * i);
  for (const Case& c : cases) {
    SCOPED_TRACE(kernels::DTypeName(c.type));
    const std::string row = EncodeRow(c.type, values);
    ASSERT_EQ(row.size(), kernels::RowBytes(c.type, values.size()));
    std::vector<float> decoded(values.size());
    kernels::DecodeRow(c.type, row.data(), values.size(), decoded.data());
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_NEAR(decoded[i], values[i], c.step) << i;
    }
  }
}

}  // namespace
}  // namespace lockstep::testing
