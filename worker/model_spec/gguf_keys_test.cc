#include "worker/model_spec/gguf_keys.h"

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>
#include <absl/types/span.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>

#include "common/gguf_file.h"
#include "kernels/rotary.h"
#include "tests/testing/gguf_writer.h"
#include "worker/model_spec/gguf_config.h"
#include "worker/model_spec/model_config.h"

namespace lockstep {
namespace {

using ::lockstep::testing::GgufWriter;
using ::testing::HasSubstr;

absl::StatusOr<ModelConfig> Read(const std::string& bytes) {
  const auto file = GgufFile::Parse(
      absl::MakeConstSpan(reinterpret_cast<const uint8_t*>(bytes.data()),
                          bytes.size()),
      "m.gguf");
  if (!file.ok()) return file.status();
  return ConfigFromGguf(**file);
}

// The least metadata there may be.
GgufWriter Minimal(const std::string& architecture) {
  GgufWriter writer;
  writer.AddString("general.architecture", architecture);
  for (const auto& [key, value] :
       {std::pair{"block_count", 2}, std::pair{"context_length", 512},
        std::pair{"embedding_length", 64}, std::pair{"feed_forward_length", 9},
        std::pair{"attention.head_count", 8}, std::pair{"vocab_size", 512}}) {
    writer.AddUint(absl::StrCat(architecture, ".", key), value);
  }
  writer.AddFloat(
      absl::StrCat(architecture, ".attention.layer_norm_rms_", "epsilon"),
      1e-5f);
  return writer;
}

void ExpectRefused(const GgufWriter& writer, const std::string& key) {
  const auto config = Read(writer.Finish());
  EXPECT_EQ(config.status().code(), absl::StatusCode::kUnimplemented)
      << config.status();
  EXPECT_THAT(std::string(config.status().message()),
              HasSubstr(absl::StrCat("m.gguf: the metadata \"", key, "\"")));
}

TEST(GgufKeys, OneThatIsNotKnownIsRefusedByName) {
  GgufWriter writer = Minimal("llama");
  writer.AddFloat("llama.attention.temperature_scale", 0.1f);
  ExpectRefused(writer, "llama.attention.temperature_scale");
}

// As llama.cpp's converter writes models that embeddings are made with.
TEST(GgufKeys, HowEmbeddingsAreMadeIsNoneOfTheDecoders) {
  GgufWriter writer = Minimal("qwen3");
  writer.AddUint("qwen3.pooling_type", 3);
  const auto config = Read(writer.Finish());
  EXPECT_TRUE(config.ok()) << config.status();
}

// As that writes the text part of Mistral Small 3.1; Ministral 3, which has the
// same name, scales queries by their position.
TEST(GgufKeys, AreOfTheNameThatTheFileHas) {
  GgufWriter writer = Minimal("mistral3");
  writer.AddUint("mistral3.attention.key_length", 32);
  writer.AddFloat("mistral3.rope.freq_base", 1e9f);
  const auto config = Read(writer.Finish());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->architecture, "mistral");
  EXPECT_EQ(config->head_dim, 32);
  EXPECT_EQ(config->rope.theta, 1e9f);
  EXPECT_EQ(config->rope.style, kernels::RopeStyle::kNeighbours);
  writer.AddFloat("mistral3.attention.temperature_scale", 0.1f);
  ExpectRefused(writer, "mistral3.attention.temperature_scale");
}

TEST(GgufKeys, AFileOfNoNameIsOfNoArchitecture) {
  EXPECT_THAT(std::string(Read(Minimal("").Finish()).status().message()),
              HasSubstr("the architecture \"\", which is not supported"));
}

TEST(GgufKeys, OfYarnAreItsOwn) {
  GgufWriter writer = Minimal("llama");
  writer.AddString("llama.rope.scaling.type", "yarn");
  writer.AddFloat("llama.rope.scaling.factor", 4);
  writer.AddFloat("llama.rope.scaling.yarn_beta_fast", 16);
  writer.AddFloat("llama.rope.scaling.yarn_beta_slow", 2);
  writer.AddFloat("llama.rope.scaling.yarn_ext_factor", 1);
  const auto config = Read(writer.Finish());
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->rope.factor, 4);
  EXPECT_EQ(config->rope.beta_fast, 16);
  EXPECT_EQ(config->rope.beta_slow, 2);

  GgufWriter half = Minimal("llama");
  half.AddString("llama.rope.scaling.type", "yarn");
  half.AddFloat("llama.rope.scaling.yarn_ext_factor", 0.5f);
  ExpectRefused(half, "llama.rope.scaling.yarn_ext_factor");

  for (const char* key : {"yarn_beta_fast", "yarn_beta_slow", "yarn_ext_factor",
                          "yarn_attn_factor", "yarn_log_multiplier"}) {
    GgufWriter other = Minimal("llama");
    other.AddFloat(absl::StrCat("llama.rope.scaling.", key), 1);
    ExpectRefused(other, absl::StrCat("llama.rope.scaling.", key));
  }
}

}  // namespace
}  // namespace lockstep
