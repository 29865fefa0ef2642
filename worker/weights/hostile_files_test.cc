// What files that lie may cost: a sentence, and no more memory than so many
// times their own bytes.

#include <absl/strings/str_cat.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/gguf_writer.h"
#include "tests/testing/memory/peak_memory.h"
#include "tests/testing/safetensors_writer.h"
#include "tests/testing/tiny_model.h"
#include "tests/testing/write_file.h"
#include "worker/weights/model_files.h"

namespace lockstep {
namespace {

using ::lockstep::testing::GgufWriter;
using ::lockstep::testing::PeakMemory;
using ::lockstep::testing::SafetensorsWriter;
using ::lockstep::testing::WriteFile;
using ::testing::HasSubstr;

constexpr int64_t kMostPerByte = 128;    // docs/models.md
constexpr int64_t kOfTheTest = 4 << 20;  // of messages and allocators
constexpr int kManyBytes = 1 << 20;

std::string Repeated(absl::string_view part) {
  std::string text;
  while (text.size() < kManyBytes) absl::StrAppend(&text, part);
  text.pop_back();  // the last comma
  return text;
}

std::string ManyKeys() {
  std::string text;
  for (int i = 0; text.size() < kManyBytes; ++i) {
    absl::StrAppend(&text, i == 0 ? "" : ",", "\"", absl::Hex(i), "\":{}");
  }
  return text;
}

std::string U64(uint64_t value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

// The largest numbers that a GGUF file's metadata may have.
GgufWriter MixtureMetadata() {
  GgufWriter writer;
  writer.AddString("general.architecture", "qwen2moe");
  const std::pair<const char*, uint32_t> numbers[] = {
      {"block_count", 1024},
      {"context_length", 1 << 24},
      {"embedding_length", 1 << 17},
      {"feed_forward_length", 1 << 20},
      {"attention.head_count", 1024},
      {"attention.key_length", 512},
      {"attention.value_length", 512},
      {"vocab_size", 1 << 22},
      {"expert_count", 1024},
      {"expert_used_count", 1024},
      {"expert_feed_forward_length", 1 << 20},
      {"expert_shared_feed_forward_length", 1 << 20}};
  for (const auto& [key, number] : numbers) {
    writer.AddUint(absl::StrCat("qwen2moe.", key), number);
  }
  writer.AddFloat("qwen2moe.attention.layer_norm_rms_epsilon", 1e-6f);
  return writer;
}

class HostileFilesTest : public ::testing::Test {
 protected:
  HostileFilesTest() {
    std::filesystem::remove_all(folder_);
    WriteFile(folder_ + "/config.json",
              MakeHuggingFaceConfig(testing::TinyModel()).dump());
  }

  // Of the model at `path`, whose file `file` has these bytes; the message
  // names it, or `named`.
  void ExpectCheapRefusal(const std::string& path, const std::string& file,
                          const std::string& bytes, const std::string& message,
                          const std::string& named = "") {
    SCOPED_TRACE(message);
    WriteFile(file, bytes);
    const PeakMemory peak;
    const auto model = OpenModel(path);
    const int64_t size = bytes.size();
    EXPECT_LE(peak.GrownBytes(), kMostPerByte * size + kOfTheTest);
    EXPECT_FALSE(model.ok());
    EXPECT_THAT(std::string(model.status().message()),
                HasSubstr(named.empty() ? file : named));
    EXPECT_THAT(std::string(model.status().message()), HasSubstr(message));
  }

  void ExpectWeightsRefused(const std::string& bytes,
                            const std::string& message) {
    ExpectCheapRefusal(folder_, folder_ + "/model.safetensors", bytes, message);
  }

  void ExpectGgufRefused(const std::string& bytes, const std::string& message) {
    const std::string path = folder_ + "/model.gguf";
    ExpectCheapRefusal(path, path, bytes, message);
  }

  const std::string folder_ = ::testing::TempDir() + "hostile";
};

TEST_F(HostileFilesTest, HeadersOfSafetensors) {
  const auto with_header = [](const std::string& header) {
    return SafetensorsWriter().FinishWithHeader(header);
  };
  ExpectWeightsRefused(U64(uint64_t{1} << 63),
                       "said to take 9223372036854775808");
  ExpectWeightsRefused(with_header("{" + ManyKeys() + "}"), "dtype is missing");
  for (const char* part : {"0,", "[],", "{},", "\"\","}) {
    ExpectWeightsRefused(with_header(R"({"a":[)" + Repeated(part) + "]}"),
                         "dtype is missing");
  }
  ExpectWeightsRefused(
      with_header(R"({"a":{"dtype":"F32","data_offsets":[0,0],"shape":[)" +
                  Repeated("9,") + "]}}"),
      "shape is missing or wrong");
}

TEST_F(HostileFilesTest, OtherFilesOfAFolder) {
  ExpectCheapRefusal(folder_, folder_ + "/model.safetensors.index.json",
                     R"({"weight_map":{)" + ManyKeys() + "}}", "is not a name");
  ExpectCheapRefusal(
      folder_, folder_ + "/config.json",
      R"({"architectures":["LlamaForCausalLM"],"a":[)" + Repeated("[],") + "]}",
      "vocab_size");
}

TEST_F(HostileFilesTest, ExpertsThatAreOneTensor) {
  testing::TinyModel mixture;
  mixture.architecture = "qwen2moe";
  nlohmann::json config = MakeHuggingFaceConfig(mixture);
  config["num_experts"] = 1024;
  WriteFile(folder_ + "/config.json", config.dump());
  std::string header;
  int count = 0;
  for (; header.size() < kManyBytes; ++count) {
    absl::StrAppend(
        &header, header.empty() ? "{" : ",", "\"model.layers.", count + 1,
        ".mlp.experts.gate_up_proj\":{\"dtype\":\"BF16\",\"shape\":[1,1,1],"
        "\"data_offsets\":[",
        2 * count, ",", 2 * count + 2, "]}");
  }
  // Those of layers that there are not cost nothing but their names.
  ExpectWeightsRefused(SafetensorsWriter().FinishWithHeader(header + "}") +
                           std::string(2 * count, 0),
                       "tensor model.layers.1.mlp.experts.gate_up_proj has "
                       "the shape [1, 1, 1], expected [1024, 128, 64]");
}

// Of no weights but those that the first tensors of the list ask for.
TEST_F(HostileFilesTest, CountsOfConfigs) {
  testing::TinyModel mixture;
  mixture.architecture = "qwen2moe";
  const nlohmann::json config = MakeHuggingFaceConfig(mixture);
  const auto refused = [&](const nlohmann::json& changes,
                           const std::string& message) {
    SCOPED_TRACE(changes.dump());
    nlohmann::json hostile = config;
    hostile.update(changes);
    WriteFile(folder_ + "/model.safetensors",
              SafetensorsWriter().FinishWithHeader("{}"));
    ExpectCheapRefusal(folder_, folder_ + "/config.json", hostile.dump(),
                       message, folder_ + "/model.safetensors");
  };
  const std::string missing =
      "tensor model.embed_tokens.weight is missing, expected one of shape [";
  refused({{"num_hidden_layers", 1024}, {"num_experts", 1024}},
          missing + "512, 64].");
  refused({{"vocab_size", 1 << 22}, {"hidden_size", 1 << 17}},
          missing + "4194304, 131072].");
  refused({{"intermediate_size", 1 << 20},
           {"moe_intermediate_size", 1 << 20},
           {"shared_expert_intermediate_size", 1 << 20}},
          missing);
  refused({{"num_attention_heads", 1024},
           {"num_key_value_heads", 1024},
           {"head_dim", 256},
           {"max_position_embeddings", 1 << 24}},
          missing);
  refused({{"max_position_embeddings", 1 << 24},
           {"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 1e4}}}},
          missing);
  refused({{"max_position_embeddings", 1 << 24},
           {"rope_scaling", {{"rope_type", "yarn"}, {"factor", 1e4}}}},
          missing);
}

// All of a layer's tensors but the last expert's are there: nothing is made for
// those of the layers after it.
TEST_F(HostileFilesTest, LayersAfterTheFirst) {
  testing::TinyModel mixture;
  mixture.architecture = "qwen2moe";
  const std::string last = "model.layers.0.mlp.experts.5.down_proj.weight";
  mixture.left_out = {last};
  WriteHuggingFaceFolder(mixture, folder_);
  nlohmann::json config = MakeHuggingFaceConfig(mixture);
  config["num_hidden_layers"] = 1024;
  ExpectCheapRefusal(folder_, folder_ + "/config.json", config.dump(),
                     absl::StrCat("tensor ", last, " is missing"),
                     folder_ + "/model.safetensors");
}

// A list of so many ends, or of layers without experts.
TEST_F(HostileFilesTest, ListsInConfigs) {
  std::string ids;
  for (int i = 0; ids.size() < kManyBytes; ++i) absl::StrAppend(&ids, i, ",");
  ids.pop_back();
  nlohmann::json config = MakeHuggingFaceConfig(testing::TinyModel());
  config["vocab_size"] = 1 << 22;
  WriteFile(folder_ + "/config.json", config.dump());
  WriteFile(folder_ + "/model.safetensors",
            SafetensorsWriter().FinishWithHeader("{}"));
  ExpectCheapRefusal(folder_, folder_ + "/generation_config.json",
                     absl::StrCat(R"({"eos_token_id":[)", ids, "]}"),
                     "tensor model.embed_tokens.weight is missing",
                     folder_ + "/model.safetensors");
  std::filesystem::remove(folder_ + "/generation_config.json");
  testing::TinyModel mixture;
  mixture.architecture = "qwen2moe";
  config = MakeHuggingFaceConfig(mixture);
  config["num_hidden_layers"] = 1024;
  std::string text = config.dump();
  text.pop_back();
  ExpectCheapRefusal(folder_, folder_ + "/config.json",
                     absl::StrCat(text, R"(,"mlp_only_layers":[)", ids, "]}"),
                     "tensor model.embed_tokens.weight is missing",
                     folder_ + "/model.safetensors");
}

// Experts of a value each: as many names as they have bytes, nearly.
TEST_F(HostileFilesTest, ExpertsOfAFewBytes) {
  testing::TinyModel mixture;
  mixture.architecture = "qwen2moe";
  nlohmann::json config = MakeHuggingFaceConfig(mixture);
  constexpr int kExperts = 1024, kLayers = 200;
  config["num_experts"] = kExperts;
  config["num_hidden_layers"] = 1024;
  config["hidden_size"] = 1;
  config["moe_intermediate_size"] = 1;
  WriteFile(folder_ + "/config.json", config.dump());
  SafetensorsWriter fused;
  GgufWriter gguf = MixtureMetadata();
  const std::string values(2 * kExperts, 0);
  for (int i = 0; i < kLayers; ++i) {
    const std::string layer = absl::StrCat("model.layers.", i, ".mlp.experts.");
    fused.AddTensor(layer + "gate_up_proj", "BF16", {kExperts, 2, 1},
                    values + values);
    fused.AddTensor(layer + "down_proj", "BF16", {kExperts, 1, 1}, values);
    for (const char* name : {"gate", "up", "down"}) {
      gguf.AddTensor(absl::StrCat("blk.", i, ".ffn_", name, "_exps.weight"),
                     {kExperts, 1, 1}, /*type=*/1, values);
    }
  }
  ExpectWeightsRefused(fused.Finish(), "model.embed_tokens.weight is missing");
  ExpectGgufRefused(gguf.Finish(), "model.embed_tokens.weight is missing");
}

TEST_F(HostileFilesTest, SizesInGguf) {
  ExpectGgufRefused(MixtureMetadata().Finish(),
                    "model.embed_tokens.weight is missing, expected one of "
                    "shape [4194304, 131072].");
}

TEST_F(HostileFilesTest, CountsOfGguf) {
  const std::string head = "GGUF" + std::string("\3\0\0\0", 4);
  for (const uint64_t many : {uint64_t{1} << 32, uint64_t{1} << 63}) {
    ExpectGgufRefused(head + U64(many) + U64(0), "the list of tensors has");
    ExpectGgufRefused(head + U64(0) + U64(many), "the metadata has");
  }
  GgufWriter string;
  string.AddRaw("general.architecture", /*type=*/8, U64(uint64_t{1} << 62));
  ExpectGgufRefused(string.Finish(), "takes 4611686018427387904 bytes");
}

TEST_F(HostileFilesTest, ManyThingsInGguf) {
  GgufWriter strings;
  strings.AddStrings("a", std::vector<std::string>(kManyBytes / 8));
  ExpectGgufRefused(strings.Finish(), "general.architecture");
  GgufWriter keys, tensors;
  for (int i = 0; i < kManyBytes / 32; ++i) {
    keys.AddBool(absl::StrCat(i), true);
    tensors.AddTensorInfo(absl::StrCat(i), {1}, /*type=*/0, /*offset=*/0);
  }
  ExpectGgufRefused(keys.Finish(), "general.architecture");
  ExpectGgufRefused(tensors.Finish(), "begins at byte 0");
}

}  // namespace
}  // namespace lockstep
