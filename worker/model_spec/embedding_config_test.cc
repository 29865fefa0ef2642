#include "worker/model_spec/embedding_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace lockstep {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Pooling = EmbeddingConfig::Pooling;

json Module(const std::string& type, const std::string& path = "") {
  return {{"type", "sentence_transformers.models." + type}, {"path", path}};
}

TEST(EmbeddingConfigTest, IsTheLastTokensNormalizedWhereNoFileTells) {
  const EmbeddingConfig embedding;
  EXPECT_EQ(embedding.pooling, Pooling::kLastToken);
  EXPECT_TRUE(embedding.normalize);
  EXPECT_FALSE(embedding.any_dimensions);
}

TEST(EmbeddingConfigTest, ModulesSayWhereThePoolingIsAndWhetherToNormalize) {
  EmbeddingConfig embedding;
  json modules =
      json::array({Module("Transformer"), Module("Pooling", "1_Pooling"),
                   Module("Normalize")});
  auto folder = ReadModules(modules, "modules.json", &embedding);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_EQ(*folder, "1_Pooling");
  EXPECT_TRUE(embedding.normalize);

  modules.erase(2);
  folder = ReadModules(modules, "modules.json", &embedding);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_FALSE(embedding.normalize);

  modules.erase(1);
  folder = ReadModules(modules, "modules.json", &embedding);
  ASSERT_TRUE(folder.ok()) << folder.status();
  EXPECT_FALSE(folder->has_value());
}

TEST(EmbeddingConfigTest, OtherModulesAreRefusedByName) {
  EmbeddingConfig embedding;
  const auto folder = ReadModules(json::array({Module("Dense", "2_Dense")}),
                                  "m/modules.json", &embedding);
  EXPECT_EQ(folder.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(folder.status().message()),
              HasSubstr("m/modules.json has a module of type "
                        "\"sentence_transformers.models.Dense\""));
}

TEST(EmbeddingConfigTest, APathLeadsToNoOtherFolder) {
  for (const char* path : {"", ".", "..", "../x", "/etc", "a/b"}) {
    EmbeddingConfig embedding;
    const auto folder = ReadModules(json::array({Module("Pooling", path)}),
                                    "modules.json", &embedding);
    EXPECT_TRUE(absl::IsInvalidArgument(folder.status())) << path;
  }
}

TEST(EmbeddingConfigTest, ModulesMustBeAList) {
  EmbeddingConfig embedding;
  EXPECT_TRUE(absl::IsInvalidArgument(
      ReadModules(json::object(), "modules.json", &embedding).status()));
}

struct PoolingCase {
  const char* text;
  Pooling pooling;
};

TEST(EmbeddingConfigTest, PoolingIsReadAsOldAndNewFilesHaveIt) {
  const PoolingCase cases[] = {
      {R"({"pooling_mode_lasttoken": true, "pooling_mode_mean_tokens": false})",
       Pooling::kLastToken},
      {R"({"pooling_mode_mean_tokens": true, "include_prompt": true})",
       Pooling::kMean},
      {R"({"pooling_mode": "mean"})", Pooling::kMean},
      {R"({"pooling_mode": "lasttoken"})", Pooling::kLastToken},
  };
  for (const PoolingCase& c : cases) {
    EmbeddingConfig embedding;
    ASSERT_TRUE(ReadPooling(json::parse(c.text), "p", &embedding).ok())
        << c.text;
    EXPECT_EQ(embedding.pooling, c.pooling) << c.text;
  }
}

TEST(EmbeddingConfigTest, OtherPoolingIsRefusedByName) {
  for (
      const char* text :
      {R"({"pooling_mode_cls_token": true})", R"({"pooling_mode": "max"})",
       R"({"pooling_mode_mean_tokens": false})", "{}",
       R"({"pooling_mode_lasttoken": true, "pooling_mode_mean_tokens": true})"}) {
    EmbeddingConfig embedding;
    const absl::Status status =
        ReadPooling(json::parse(text), "1_Pooling/config.json", &embedding);
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented) << text;
    EXPECT_THAT(std::string(status.message()),
                HasSubstr("1_Pooling/config.json has"));
  }
}

TEST(EmbeddingConfigTest, FewerDimensionsAreForModelsThatSaySo) {
  EmbeddingConfig embedding;
  ASSERT_TRUE(ReadMatryoshka(json::object(), "c", 64, &embedding).ok());
  EXPECT_FALSE(embedding.any_dimensions);
  EXPECT_THAT(embedding.fewer_dimensions, IsEmpty());

  ASSERT_TRUE(ReadMatryoshka(json::parse(R"({"is_matryoshka": true})"), "c", 64,
                             &embedding)
                  .ok());
  EXPECT_TRUE(embedding.any_dimensions);

  ASSERT_TRUE(ReadMatryoshka(json::parse(R"({"is_matryoshka": true,
                                     "matryoshka_dimensions": [32, 16]})"),
                             "c", 64, &embedding)
                  .ok());
  EXPECT_FALSE(embedding.any_dimensions);
  EXPECT_THAT(embedding.fewer_dimensions, ElementsAre(32, 16));
}

TEST(EmbeddingConfigTest, DimensionsThatCanNotBeAreRefused) {
  for (const char* list : {"[0]", "[65]", "[-1]", "[1.5]", "[\"8\"]", "8"}) {
    EmbeddingConfig embedding;
    json config;
    config["matryoshka_dimensions"] = json::parse(list);
    const absl::Status status = ReadMatryoshka(config, "c", 64, &embedding);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << list;
  }
}

}  // namespace
}  // namespace lockstep
