// Models as they are saved without a head, by transformers' class of the
// decoder alone: most of those on the hub that are made for embeddings.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/testing/tiny_model.h"
#include "tests/testing/write_file.h"
#include "worker/weights/model_files.h"
#include "worker/weights/model_weights.h"

namespace lockstep {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::TinyModel;

// A folder of its own for each test.
std::string NewFolder(const TinyModel& tiny, const std::string& suffix = "") {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string folder = ::testing::TempDir() + test->name() + suffix;
  std::filesystem::remove_all(folder);
  WriteHuggingFaceFolder(tiny, folder);
  return folder;
}

TinyModel WithoutHead() {
  TinyModel tiny;
  tiny.without_head = true;
  return tiny;
}

std::string RefusalOf(const std::string& folder) {
  return std::string(OpenModel(folder).status().message());
}

TEST(BaseModel, OfATiedOneNothingIsMissing) {
  TinyModel tiny;
  tiny.architecture = "qwen3";
  tiny.tied_embeddings = true;
  const auto whole = OpenModel(NewFolder(tiny, "whole"));
  tiny.without_head = true;
  const auto base = OpenModel(NewFolder(tiny));
  ASSERT_TRUE(whole.ok() && base.ok()) << base.status();
  EXPECT_EQ(base->fingerprint, whole->fingerprint);
  EXPECT_EQ(base->tensors->Names(), whole->tensors->Names());
  EXPECT_TRUE(base->config.has_head);
}

TEST(BaseModel, OfOneThatIsNotTiedTheHeadIs) {
  for (const char* architecture : {"mistral", "qwen2", "gemma3", "qwen2moe"}) {
    TinyModel tiny = WithoutHead();
    tiny.architecture = architecture;
    const auto model = OpenModel(NewFolder(tiny));
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->config.architecture, architecture);
    EXPECT_FALSE(model->config.has_head);
    const auto shard =
        MakeShard(model->config, model->row_parallel_blocks, 0, 1);
    const auto weights = LoadWeights(*model->tensors, model->config, *shard);
    ASSERT_TRUE(weights.ok()) << weights.status();
    EXPECT_EQ(weights->head.rows(), 0);
    EXPECT_EQ(weights->layers.size(), 2);
  }
}

// It might be cut off.
TEST(BaseModel, OneWithThePrefixMustHaveItsHead) {
  TinyModel tiny;
  tiny.left_out = {"lm_head.weight"};
  EXPECT_THAT(RefusalOf(NewFolder(tiny)),
              HasSubstr("tensor lm_head.weight is missing"));
}

TEST(BaseModel, WhatIsMissingIsNamed) {
  TinyModel tiny = WithoutHead();
  tiny.left_out = {"model.norm.weight"};
  EXPECT_THAT(RefusalOf(NewFolder(tiny)),
              HasSubstr("tensor model.norm.weight is missing"));
}

TEST(BaseModel, WhatIsTooMuchIsNamed) {
  TinyModel tiny = WithoutHead();
  tiny.num_layers = 3;
  const std::string folder = NewFolder(tiny);
  tiny.num_layers = 2;
  testing::WriteFile(folder + "/config.json",
                     MakeHuggingFaceConfig(tiny).dump());
  EXPECT_THAT(RefusalOf(folder),
              AllOf(HasSubstr("model.layers.2."), HasSubstr("is not part of")));
}

TEST(BaseModel, WithoutAHeadAndEmbeddingsItIsOfNoUse) {
  const std::string folder = NewFolder(WithoutHead());
  testing::WriteFile(folder + "/modules.json",
                     R"([{"path": "", "type": "a.Transformer"},
                         {"path": "2_Dense", "type": "a.Dense"}])");
  EXPECT_THAT(RefusalOf(folder),
              AllOf(HasSubstr("neither an output head, lm_head.weight, nor"),
                    HasSubstr("Dense")));
}

}  // namespace
}  // namespace lockstep
