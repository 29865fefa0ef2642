#include "worker/checkpoint/text_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/safetensors_writer.h"
#include "tests/testing/write_file.h"
#include "worker/checkpoint/safetensors_folder.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::unique_ptr<TensorSource> SourceOf(const std::vector<std::string>& names) {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder = ::testing::TempDir() + test->name();
  std::filesystem::create_directories(folder);
  lockstep::testing::SafetensorsWriter writer;
  for (const std::string& name : names) {
    writer.AddTensor(name, "F32", {1}, "abcd");
  }
  lockstep::testing::WriteFile(folder + "/model.safetensors", writer.Finish());
  auto source = SafetensorsFolder::Open(folder);
  EXPECT_TRUE(source.ok()) << source.status();
  return *std::move(source);
}

TEST(TextPart, NamesOfABaseModelGetThePrefix) {
  auto source = SourceOf({"embed_tokens.weight", "layers.0.mlp.up_proj.weight",
                          "norm.weight", "lm_head.weight", "score.weight"});
  ASSERT_EQ(IsBaseModel(*source).value_or(false), true);
  const auto part = TextPart::OfBase(std::move(source));
  ASSERT_TRUE(part.ok()) << part.status();
  EXPECT_THAT((*part)->Names(),
              ElementsAre("lm_head.weight", "model.embed_tokens.weight",
                          "model.layers.0.mlp.up_proj.weight",
                          "model.norm.weight", "score.weight"));
  EXPECT_EQ((*part)->Get("model.norm.weight")->name, "model.norm.weight");
  EXPECT_THAT((*part)->FileOf("model.norm.weight"),
              HasSubstr("model.safetensors"));
  EXPECT_FALSE((*part)->Get("norm.weight").ok());
}

TEST(TextPart, OneWithAHeadIsNoBaseModel) {
  EXPECT_EQ(IsBaseModel(*SourceOf({"model.norm.weight", "lm_head.weight"}))
                .value_or(true),
            false);
  EXPECT_EQ(IsBaseModel(*SourceOf({"vision.norm.weight"})).value_or(true),
            false);
}

TEST(TextPart, TensorsOfBothKindsAreRefused) {
  for (const char* other : {"layers.0.mlp.up_proj.weight",
                            "layers.1.mlp.up_proj.weight", "norm.weight"}) {
    const auto is_base =
        IsBaseModel(*SourceOf({"model.layers.0.mlp.up_proj.weight", other}));
    EXPECT_EQ(is_base.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(is_base.status().message()),
                AllOf(HasSubstr("\"model.layers.0.mlp.up_proj.weight\" and \""),
                      HasSubstr(other), HasSubstr("TensorsOfBothKinds")));
  }
}

TEST(TextPart, TwoNamesOfOneTensorAreRefused) {
  const auto part =
      TextPart::OfVisionModel(SourceOf({"language_model.model.norm.weight",
                                        "model.language_model.norm.weight"}));
  EXPECT_EQ(part.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(part.status().message()),
              AllOf(HasSubstr("\"language_model.model.norm.weight\""),
                    HasSubstr("\"model.language_model.norm.weight\""),
                    HasSubstr("are both model.norm.weight.")));
}

}  // namespace
}  // namespace lockstep
