#include "kernels/weights/encode_row.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_split.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace lockstep::kernels {
namespace {

TEST(EncodeRow, RoundsAsTheGgufPackageDoes) {
  std::ifstream file("kernels/weights/testdata/quantized.txt");
  ASSERT_TRUE(file.is_open());
  std::map<std::string, int> seen;
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, ' ');
    ASSERT_EQ(fields.size(), 3);
    const DType type = fields[0] == "Q8_0" ? DType::kQ8_0 : DType::kQ4_0;
    const std::string bytes = absl::HexStringToBytes(fields[1]);
    const std::string expected = absl::HexStringToBytes(fields[2]);
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    std::string encoded(RowBytes(type, values.size()), '\0');
    EncodeRow(type, values.data(), values.size(),
              reinterpret_cast<uint8_t*>(encoded.data()));
    EXPECT_EQ(absl::BytesToHexString(encoded), absl::BytesToHexString(expected))
        << line;
    ++seen[fields[0]];
  }
  EXPECT_EQ(seen.size(), 2);
}

TEST(EncodeRow, ABlockWithWhatIsNotFiniteIsNotANumber) {
  for (const DType type : {DType::kQ8_0, DType::kQ4_0}) {
    for (const float bad : {NAN, std::numeric_limits<float>::infinity()}) {
      std::vector<float> values(64, 1.0f);
      values[5] = bad;
      std::vector<uint8_t> row(RowBytes(type, 64));
      EncodeRow(type, values.data(), 64, row.data());
      DecodeRow(type, row.data(), 64, values.data());
      EXPECT_TRUE(std::isnan(values[0]));
      EXPECT_NEAR(values[32], 1, 1e-3);
    }
  }
}

}  // namespace
}  // namespace lockstep::kernels
