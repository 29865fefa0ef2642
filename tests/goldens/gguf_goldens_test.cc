// The tiny models again, from the GGUF files that tools/convert_to_gguf.py
// makes of their folders, and the page that says so.
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/goldens/golden_check.h"
#include "worker/model_spec/architecture.h"
#include "worker/weights/model_files.h"

namespace lockstep::goldens {
namespace {

namespace fs = std::filesystem;

constexpr char kTiny[] = "tests/goldens/tiny";
constexpr const char* kWithoutGguf[] = {"llama_dynamic", "qwen2_window"};

bool Convert(const fs::path& folder, const fs::path& out) {
  const std::string command = absl::StrCat(
      "PYTHONDONTWRITEBYTECODE=1 python3 tools/convert_to_gguf.py ",
      folder.string(), " ", out.string());
  return std::system(command.c_str()) == 0;
}

std::set<std::string> TinyModels() {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(kTiny)) {
    names.insert(entry.path().filename());
  }
  return names;
}

bool HasGguf(const std::string& name) {
  return std::find(std::begin(kWithoutGguf), std::end(kWithoutGguf), name) ==
         std::end(kWithoutGguf);
}

TEST(GgufGoldens, AgreeAsThoseOfTheFoldersDo) {
  const fs::path root = fs::path(::testing::TempDir()) / "gguf";
  int models = 0;
  for (const std::string& name : TinyModels()) {
    if (!HasGguf(name)) continue;
    fs::create_directories(root / name);
    for (const std::string type : {"fp32", "bf16"}) {
      const std::string goldens =
          absl::StrCat("goldens.", type, ".safetensors");
      fs::copy_file(fs::path(kTiny) / name / goldens, root / name / goldens);
      ASSERT_TRUE(Convert(fs::path(kTiny) / name / type,
                          root / name / absl::StrCat(type, ".gguf")));
    }
    ++models;
  }
  GoldenCheckOptions options;
  options.folder = root;
  options.numerics = {kernels::Arithmetic::kStrict, kernels::KvType::kF32};
  const auto counts = CheckGoldens(options, std::cout);
  ASSERT_TRUE(counts.ok()) << counts.status();
  EXPECT_EQ(counts->failed, 0);
  EXPECT_EQ(counts->skipped, 0);
  // Sizes 1, 2, 3, 4, 8 and the equality of four of them; six sizes of
  // llama_uneven; five with whole experts of six mixtures.
  EXPECT_EQ(counts->passed, 2 * (models * 6 + 6 * 5));
}

TEST(GgufGoldens, WhatHasNoGgufFileIsRefused) {
  for (const char* name : kWithoutGguf) {
    EXPECT_FALSE(Convert(fs::path(kTiny) / name / "bf16",
                         fs::path(::testing::TempDir()) / "refused.gguf"))
        << name;
  }
}

// A copy of qwen2, whose rope is scaled by yarn, that says more of it.
fs::path WithYarn(const nlohmann::json& more) {
  const fs::path folder = fs::path(::testing::TempDir()) / "yarn";
  fs::remove_all(folder);
  fs::create_directories(folder);
  for (const auto& entry :
       fs::directory_iterator(fs::path(kTiny) / "qwen2/bf16")) {
    fs::copy_file(entry.path(), folder / entry.path().filename());
  }
  std::ifstream in(folder / "config.json");
  nlohmann::json config = nlohmann::json::parse(in);
  config["rope_scaling"].update(more);
  fs::remove(folder / "config.json");
  std::ofstream(folder / "config.json") << config.dump();
  return folder;
}

TEST(GgufGoldens, WhatElseYarnSaysGoesAlongOrIsRefused) {
  const fs::path out = fs::path(::testing::TempDir()) / "yarn.gguf";
  const fs::path folder = WithYarn({{"beta_fast", 16}, {"beta_slow", 2}});
  ASSERT_TRUE(Convert(folder, out));
  const auto of_folder = OpenModel(folder), of_file = OpenModel(out);
  ASSERT_TRUE(of_folder.ok() && of_file.ok())
      << of_folder.status() << of_file.status();
  EXPECT_EQ(of_file->config.rope.beta_fast, 16);
  EXPECT_EQ(of_file->config.rope.beta_slow, 2);
  EXPECT_EQ(of_folder->config.rope.beta_fast, 16);
  EXPECT_EQ(of_folder->config.rope.beta_slow, 2);
  EXPECT_TRUE(Convert(WithYarn({{"truncate", true}}), out));
  for (const nlohmann::json& more : {nlohmann::json{{"attention_factor", 1.5}},
                                     {{"mscale", 0.7}},
                                     {{"mscale_all_dim", 1}},
                                     {{"truncate", false}}}) {
    EXPECT_FALSE(Convert(WithYarn(more), out)) << more.dump();
  }
}

std::vector<std::string> Quoted(const std::string& cell) {
  const std::vector<std::string> parts = absl::StrSplit(cell, '`');
  std::vector<std::string> quoted;
  for (size_t i = 1; i < parts.size(); i += 2) quoted.push_back(parts[i]);
  return quoted;
}

// The cells of the lines of the page's table of architectures.
std::vector<std::vector<std::string>> ArchitecturesOnThePage() {
  std::ifstream page("docs/models.md");
  EXPECT_TRUE(page.is_open());
  std::vector<std::vector<std::string>> lines;
  for (std::string line; std::getline(page, line);) {
    if (!absl::StrContains(line, "ForCausalLM` |") &&
        !absl::StrContains(line, "(its text part) |")) {
      continue;
    }
    lines.push_back(absl::StrSplit(line, '|'));
    EXPECT_EQ(lines.back().size(), 6) << line;
  }
  return lines;
}

TEST(ModelsPage, NamesArchitecturesThatAreKnown) {
  bool ignored;
  for (const auto& cells : ArchitecturesOnThePage()) {
    for (const std::string& name : Quoted(cells[1])) {
      EXPECT_NE(FindHuggingFaceArchitecture(name, &ignored), nullptr) << name;
    }
    for (const std::string& name : Quoted(cells[2])) {
      EXPECT_TRUE(FindGgufArchitecture(name, false) != nullptr ||
                  FindGgufArchitecture(name, true) != nullptr)
          << name;
    }
  }
}

// In the last column.
TEST(ModelsPage, NamesTheTinyModelsThatItIsTestedWith) {
  std::set<std::string> named;
  for (const auto& cells : ArchitecturesOnThePage()) {
    for (const std::string& name : Quoted(cells[4])) named.insert(name);
  }
  EXPECT_EQ(named, TinyModels());
}

}  // namespace
}  // namespace lockstep::goldens
