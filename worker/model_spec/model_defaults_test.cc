#include "worker/model_spec/model_defaults.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ModelDefaultsTest : public ::testing::Test {
 protected:
  ModelDefaultsTest() : folder_(::testing::TempDir() + "/model") {
    std::filesystem::remove_all(folder_);
    Write("config.json", "{}");
    config_.max_context = 4096;
  }

  void Write(const std::string& name, absl::string_view content) {
    testing::WriteFile(folder_ + "/" + name, content);
  }

  ModelDefaults Read(bool has_head = false) const {
    const auto defaults = ReadModelDefaults(folder_, config_, has_head);
    EXPECT_TRUE(defaults.ok()) << defaults.status();
    return *defaults;
  }

  const std::string folder_;
  ModelConfig config_;
};

TEST_F(ModelDefaultsTest, WithoutFurtherFilesAreTheModels) {
  const ModelDefaults defaults = Read();
  EXPECT_EQ(defaults.context, 4096);
  EXPECT_EQ(defaults.sampling.ToString(), "");
  EXPECT_THAT(defaults.notes, IsEmpty());
}

TEST_F(ModelDefaultsTest, FilesThatAgreeAreNotNoted) {
  Write("config.json",
        R"({"eos_token_id": 2, "bos_token_id": 1, "tie_word_embeddings": true,
            "max_position_embeddings": 4096})");
  Write("generation_config.json",
        R"({"eos_token_id": [7, 2], "bos_token_id": 1, "do_sample": true,
            "temperature": 0.5})");
  Write("tokenizer_config.json", R"({"model_max_length": 1e30})");
  config_.tied_embeddings = true;
  const ModelDefaults defaults = Read();
  EXPECT_EQ(defaults.sampling.ToString(), "temperature=0.5");
  EXPECT_EQ(defaults.context, 4096);
  EXPECT_THAT(defaults.notes, IsEmpty());
}

TEST_F(ModelDefaultsTest, NotesIdsThatDiffer) {
  Write("config.json", R"({"eos_token_id": 2, "bos_token_id": 1})");
  Write("generation_config.json",
        R"({"eos_token_id": [9, 7], "bos_token_id": 3})");
  EXPECT_THAT(Read().notes,
              ElementsAre("eos_token_id is 2 in config.json and 7, 9 in "
                          "generation_config.json: all of them end an answer.",
                          "bos_token_id is 1 in config.json and 3 in "
                          "generation_config.json: the tokenizer's counts."));
}

TEST_F(ModelDefaultsTest, AShorterLengthOfTheTokenizerIsTheUsualOne) {
  Write("tokenizer_config.json", R"({"model_max_length": 2048})");
  const ModelDefaults defaults = Read();
  EXPECT_EQ(defaults.context, 2048);
  EXPECT_THAT(defaults.notes,
              ElementsAre("model_max_length is 2048 in tokenizer_config.json, "
                          "and the model takes 4096 tokens: the context is "
                          "2048 unless --max_model_len says more."));
}

TEST_F(ModelDefaultsTest, NotesAStretchedContext) {
  Write("config.json", R"({"text_config": {"max_position_embeddings": 1024}})");
  config_.rope.scaling = RopeConfig::Scaling::kYarn;
  config_.rope.factor = 4;
  config_.rope.original_max_position = 1024;
  EXPECT_THAT(Read().notes,
              ElementsAre("max_position_embeddings is 1024, and yarn stretches "
                          "1024 positions by 4: the model takes 4096 tokens."));
}

TEST_F(ModelDefaultsTest, NotesAHeadBesideATiedOne) {
  config_.tied_embeddings = true;
  EXPECT_THAT(Read(/*has_head=*/true).notes,
              ElementsAre(HasSubstr("the embedding is the head")));
}

TEST_F(ModelDefaultsTest, NotesThatGreedyIsNotTaken) {
  Write("generation_config.json", R"({"do_sample": false})");
  EXPECT_THAT(Read().notes, ElementsAre(HasSubstr("do_sample is false")));
  Write("generation_config.json", R"({"do_sample": false, "temperature": 0})");
  EXPECT_THAT(Read().notes, IsEmpty());
}

TEST_F(ModelDefaultsTest, WhatIsNoObjectIsRefused) {
  Write("generation_config.json", "[]");
  EXPECT_THAT(
      std::string(
          ReadModelDefaults(folder_, config_, false).status().message()),
      HasSubstr("generation_config.json holds no JSON object."));
}

}  // namespace
}  // namespace lockstep
