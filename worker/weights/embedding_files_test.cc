#include "worker/weights/embedding_files.h"

#include <absl/status/statusor.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "tests/testing/gguf_writer.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"
#include "tests/testing/write_file.h"
#include "worker/model_spec/embedding_config.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

using Pooling = EmbeddingConfig::Pooling;
using ::lockstep::testing::GgufWriter;
using ::lockstep::testing::TinyModel;
using ::lockstep::testing::WriteFile;
using ::testing::HasSubstr;

// A model that opens, whatever it says of embeddings.
ModelFiles OpenGguf(std::optional<uint32_t> pooling_type) {
  TinyModel tiny;
  tiny.architecture = "qwen3";
  GgufWriter writer = MakeGguf(tiny);
  if (pooling_type.has_value()) {
    writer.AddUint("qwen3.pooling_type", *pooling_type);
  }
  const std::string path = ::testing::TempDir() + "pooling.gguf";
  WriteFile(path, writer.Finish());
  auto model = OpenModel(path);
  EXPECT_TRUE(model.ok()) << model.status();
  return model.ok() ? *std::move(model) : ModelFiles();
}

TEST(EmbeddingFiles, AGgufFileSaysHowTheyArePooled) {
  const struct {
    std::optional<uint32_t> type;
    Pooling pooling;
  } cases[] = {{std::nullopt, Pooling::kLastToken},
               {0, Pooling::kLastToken},
               {1, Pooling::kMean},
               {3, Pooling::kLastToken}};
  for (const auto& c : cases) {
    const ModelFiles model = OpenGguf(c.type);
    ASSERT_TRUE(model.embedding.ok()) << model.embedding.status();
    EXPECT_EQ(model.embedding->pooling, c.pooling) << c.type.value_or(99);
  }
}

TEST(EmbeddingFiles, AGgufFileThatPoolsOtherwiseGeneratesAlone) {
  for (const uint32_t type : {2, 4, 5}) {
    const ModelFiles model = OpenGguf(type);
    EXPECT_FALSE(model.embedding.ok());
    EXPECT_THAT(std::string(model.embedding.status().message()),
                HasSubstr("\"qwen3.pooling_type\""));
  }
}

class FolderTest : public ::testing::Test {
 protected:
  FolderTest() {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_ + "/1_Pooling");
  }

  absl::StatusOr<EmbeddingConfig> Read() const {
    return ReadEmbeddingFiles(folder_, nlohmann::json::object(), 64);
  }

  const std::string folder_ = ::testing::TempDir() + "embedding";
};

TEST_F(FolderTest, WithoutModulesItIsTheLastToken) {
  const auto embedding = Read();
  ASSERT_TRUE(embedding.ok()) << embedding.status();
  EXPECT_EQ(embedding->pooling, Pooling::kLastToken);
}

TEST_F(FolderTest, ModulesNameTheFileOfThePooling) {
  WriteFile(
      folder_ + "/modules.json",
      R"([{"path": "", "type": "sentence_transformers.models.Transformer"},
                {"path": "1_Pooling",
                 "type": "sentence_transformers.models.Pooling"}])");
  EXPECT_THAT(std::string(Read().status().message()),
              HasSubstr("1_Pooling/config.json"));
  WriteFile(folder_ + "/1_Pooling/config.json",
            R"({"pooling_mode_mean_tokens": true})");
  const auto embedding = Read();
  ASSERT_TRUE(embedding.ok()) << embedding.status();
  EXPECT_EQ(embedding->pooling, Pooling::kMean);
}

}  // namespace
}  // namespace lockstep
