// Tiny checkpoints in each of Hugging Face's quantized formats, on equal and
// unequal shards, and the page that lists them.
#include <absl/strings/match.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "tests/goldens/golden_check.h"

namespace lockstep::goldens {
namespace {

namespace fs = std::filesystem;

using kernels::Arithmetic;
using kernels::KvType;

constexpr char kQuantized[] = "tests/goldens/quantized";

std::set<std::string> Models() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kQuantized)) {
    names.insert(entry.path().filename());
  }
  return names;
}

// Three ranks hold two or three of the eight heads and of the blocks of 32
// columns; 1, 2, 4 and 8 give the same bits. The mixture again with whole
// experts.
void ExpectAgreement(const Numerics& numerics) {
  GoldenCheckOptions options;
  options.folder = kQuantized;
  options.tensor_parallel_sizes = {1, 2, 3, 4, 8};
  options.numerics = numerics;
  const auto counts = CheckGoldens(options, std::cout);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->passed, Models().size() * (5 + 1) + 5);
  EXPECT_EQ(counts->failed, 0);
  EXPECT_EQ(counts->skipped, 0);
}

TEST(QuantizedGoldens, AgreeInStrictArithmetic) {
  ExpectAgreement({Arithmetic::kStrict, KvType::kF32});
}

TEST(QuantizedGoldens, AgreeInFastArithmetic) {
  ExpectAgreement({Arithmetic::kFast, KvType::kF32});
}

// The names between backticks in the last cells of its table of formats.
TEST(ModelsPage, NamesTheCheckpointOfEachQuantizedFormat) {
  std::ifstream page("docs/models.md");
  ASSERT_TRUE(page.is_open());
  std::set<std::string> named;
  bool in_table = false;
  for (std::string line; std::getline(page, line);) {
    if (absl::StartsWith(line, "| quant_method |")) in_table = true;
    if (line.empty()) in_table = false;
    if (!in_table) continue;
    const std::vector<std::string> cells = absl::StrSplit(line, '|');
    ASSERT_GE(cells.size(), 3) << line;
    const std::vector<std::string> parts =
        absl::StrSplit(cells[cells.size() - 2], '`');
    for (size_t i = 1; i < parts.size(); i += 2) named.insert(parts[i]);
  }
  EXPECT_EQ(named, Models());
}

}  // namespace
}  // namespace lockstep::goldens
