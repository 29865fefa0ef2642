#include "hub/model_name.h"

#include <absl/strings/match.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

std::string Parsed(const std::string& model) {
  const auto parsed = ParseHubModel(model);
  if (!parsed.ok()) return "error";
  if (!parsed->has_value()) return "path";
  return (*parsed)->repo + " " + (*parsed)->revision + " " + (*parsed)->file;
}

TEST(ModelNameTest, TellsAHubsModelsFromPaths) {
  const std::pair<const char*, const char*> kCases[] = {
      {"owner/name", "owner/name main "},
      {"Qwen/Qwen3-0.6B", "Qwen/Qwen3-0.6B main "},
      {"owner/name@v1.0", "owner/name v1.0 "},
      {"owner/name@refs/pr/3", "owner/name refs/pr/3 "},
      {"owner/name:a/b.gguf", "owner/name main a/b.gguf"},
      {"owner/name:Q4_K_M", "owner/name main Q4_K_M"},
      {"owner/name@dev:f@2.gguf", "owner/name dev f@2.gguf"},
      {"/models/name", "path"},
      {"./owner/name", "path"},
      {"../name", "path"},
      {"~/name", "path"},
      {"name", "path"},
      {"owner/name/", "path"},
      {"a/b/c", "path"},
      {"models/a.gguf", "path"},
      {"models/a.GGUF", "path"},
      {"owner/na--me", "path"},
      {"owner/na me", "path"},
      {"", "path"},
      {"owner/name@", "error"},
      {"owner/name:", "error"},
      {"owner/name@..", "error"},
      {"owner/name@a/../b", "error"},
      {"owner/name:../f.gguf", "error"},
      {"owner/name:/f.gguf", "error"},
      {"owner/name:a\nb.gguf", "error"},
  };
  for (const auto& [model, expected] : kCases) {
    EXPECT_EQ(Parsed(model), expected) << model;
  }
}

TEST(ModelNameTest, WhatIsThereIsAPath) {
  std::filesystem::current_path(::testing::TempDir());
  testing::WriteFile("owner/name/config.json", "{}");
  EXPECT_EQ(Parsed("owner/name"), "path");
  EXPECT_EQ(Parsed("owner/other"), "owner/other main ");
}

TEST(ModelNameTest, AnErrorShowsTheForms) {
  const std::string error(ParseHubModel("owner/name:").status().message());
  EXPECT_TRUE(absl::StrContains(error, "--model is owner/name:;")) << error;
  EXPECT_TRUE(absl::StrContains(error, "owner/name@revision")) << error;
}

TEST(ModelNameTest, IsWrittenAsItIsRead) {
  for (const char* model : {"a/b", "a/b@v1", "a/b:c.gguf", "a/b@v1:c.gguf"}) {
    EXPECT_EQ((*ParseHubModel(model))->ToString(), model);
  }
}

TEST(ModelNameTest, ServedName) {
  const std::string commit(40, 'c');
  const std::string cached = "/cache/models--Qwen--Qwen3/snapshots/" + commit;
  const std::pair<std::string, const char*> kCases[] = {
      {"/models/qwen3", "qwen3"},
      {"/models/qwen3//", "qwen3"},
      {"a/b/SmolLM2.Q4_1.gguf", "SmolLM2.Q4_1"},
      {"x.GGUF", "x"},
      {"/", ""},
      {"Qwen/Qwen3", "Qwen/Qwen3"},
      {"Qwen/Qwen3@v1", "Qwen/Qwen3"},
      {"Qwen/Qwen3:sub/q.Q8_0.gguf", "q.Q8_0"},
      {"Qwen/Qwen3:Q8_0", "Qwen/Qwen3:Q8_0"},
      {cached, "Qwen/Qwen3"},
      {cached + "/", "Qwen/Qwen3"},
      {cached + "/q.Q8_0.gguf", "q.Q8_0"},
  };
  for (const auto& [model, name] : kCases) {
    EXPECT_EQ(DefaultModelName(model), name) << model;
  }
}

}  // namespace
}  // namespace lockstep
