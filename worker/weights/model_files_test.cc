#include "worker/weights/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "tests/testing/gguf_writer.h"
#include "tests/testing/safetensors_writer.h"
#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"
#include "tests/testing/write_file.h"

namespace lockstep {
namespace {

using kernels::DType;
using ::lockstep::testing::GgufWriter;
using ::lockstep::testing::MakeGguf;
using ::lockstep::testing::MakeHuggingFaceConfig;
using ::lockstep::testing::SafetensorsWriter;
using ::lockstep::testing::TinyModel;
using ::lockstep::testing::WriteFile;
using ::lockstep::testing::WriteGguf;
using ::lockstep::testing::WriteHuggingFaceFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A path of its own for each test.
std::string NewPath(const std::string& suffix = "") {
  const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
  const std::string path = ::testing::TempDir() + test->name() + suffix;
  std::filesystem::remove_all(path);
  return path;
}

void ExpectRefused(const std::string& path, absl::StatusCode code,
                   const std::string& message) {
  const auto model = OpenModel(path);
  EXPECT_EQ(model.status().code(), code) << model.status();
  EXPECT_THAT(std::string(model.status().message()), HasSubstr(message));
  EXPECT_THAT(std::string(model.status().message()), HasSubstr(path));
}

TEST(OpenModel, OpensAFolder) {
  const std::string path = NewPath();
  TinyModel tiny;
  tiny.type = DType::kBF16;
  WriteHuggingFaceFolder(tiny, path);
  WriteFile(path + "/generation_config.json", R"({"eos_token_id": [2, 9]})");
  const auto model = OpenModel(path);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->config.architecture, "llama");
  EXPECT_THAT(model->config.eos_token_ids, ElementsAre(2, 9));
  EXPECT_EQ(model->row_parallel_blocks, RowParallelBlocks());
  EXPECT_THAT(model->weight_types, ElementsAre("BF16", "F32"));
  EXPECT_EQ(model->tensors->Names().size(), 21);
  EXPECT_EQ(model->fingerprint.size(), 32);
}

TEST(OpenModel, OpensAGgufFile) {
  const std::string path = NewPath(".gguf");
  TinyModel tiny;
  tiny.architecture = "qwen3";
  tiny.tied_embeddings = true;
  tiny.type = DType::kQ4_1;
  WriteGguf(tiny, path);
  const auto model = OpenModel(path);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->config.architecture, "qwen3");
  EXPECT_TRUE(model->config.tied_embeddings);
  EXPECT_EQ(model->row_parallel_blocks, (RowParallelBlocks{32, 32}));
  EXPECT_THAT(model->weight_types, ElementsAre("Q4_1", "F32"));
  EXPECT_EQ(model->tensors->Names().size(), 24);
}

// Both names that files have, and tensors of no use here.
TEST(OpenModel, TakesTheLanguagePartOfAModelWithVision) {
  const std::string alone = NewPath("alone");
  WriteHuggingFaceFolder(TinyModel(), alone);
  nlohmann::json text = MakeHuggingFaceConfig(TinyModel());
  text["model_type"] = "mistral";
  const nlohmann::json config = {
      {"architectures", {"Mistral3ForConditionalGeneration"}},
      {"text_config", text}};
  for (const auto& [prefix, head] :
       {std::pair{"language_model.", "language_model.lm_head.weight"},
        {"model.language_model.", "lm_head.weight"}}) {
    const std::string folder = NewPath("vision");
    SafetensorsWriter writer;
    writer.AddTensor("vision_tower.patch_conv.weight", "F32", {1}, "abcd");
    for (const auto& tensor : lockstep::testing::MakeTensors(TinyModel())) {
      const std::string name =
          tensor.name == "lm_head.weight"
              ? head
              : prefix + (std::string(prefix) == "language_model."
                              ? tensor.name
                              : tensor.name.substr(strlen("model.")));
      writer.AddTensor(name, "F32", tensor.shape,
                       lockstep::testing::StoredBytes(TinyModel(), tensor));
    }
    WriteFile(folder + "/config.json", config.dump());
    WriteFile(folder + "/model.safetensors", writer.Finish());
    const auto model = OpenModel(folder);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ(model->config.architecture, "mistral");
    EXPECT_EQ(model->tensors->Names(), OpenModel(alone)->tensors->Names());
    EXPECT_EQ(model->tensors->FileOf("model.norm.weight"),
              folder + "/model.safetensors");
  }
}

TEST(OpenModel, KnowsTheBlocksOfOAndDownApart) {
  const std::string path = NewPath(".gguf");
  TinyModel tiny;
  tiny.intermediate_size = 256;
  tiny.row_parallel_type = DType::kQ8_0;
  tiny.down_type = DType::kQ6_K;
  WriteGguf(tiny, path);
  const auto model = OpenModel(path);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->row_parallel_blocks,
            (RowParallelBlocks{.o = 32, .down = 256}));
}

TEST(OpenModel, OneFileOrManyAreTheSameModel) {
  const std::string one = NewPath("1"), many = NewPath("3");
  WriteHuggingFaceFolder(TinyModel(), one);
  WriteHuggingFaceFolder(TinyModel(), many, /*num_files=*/3);
  EXPECT_EQ(OpenModel(one)->fingerprint, OpenModel(many)->fingerprint);
}

TEST(OpenModel, FingerprintsTellModelsApart) {
  const std::string path = NewPath();
  const auto fingerprint = [&path](const TinyModel& model) {
    WriteHuggingFaceFolder(model, path);
    return OpenModel(path)->fingerprint;
  };
  TinyModel other_values, other_type, other_rope, other_end;
  other_values.seed = 2;
  other_type.type = DType::kF16;
  other_rope.rope_theta = 20000;
  other_end.eos_token_id = 3;
  const std::string base = fingerprint(TinyModel());
  EXPECT_EQ(fingerprint(TinyModel()), base);
  EXPECT_NE(fingerprint(other_values), base);
  EXPECT_NE(fingerprint(other_type), base);
  EXPECT_NE(fingerprint(other_rope), base);
  EXPECT_NE(fingerprint(other_end), base);
}

// Within the original context, 512, rope is the same for all; past it, it is
// for sequences of one length.
TEST(OpenModel, FingerprintsTellContextsApartWhereRopeFollowsThem) {
  const std::string path = NewPath();
  WriteHuggingFaceFolder(TinyModel(), path);
  EXPECT_EQ(OpenModel(path, 300)->fingerprint, OpenModel(path)->fingerprint);
  auto config = MakeHuggingFaceConfig(TinyModel());
  config["rope_scaling"] = {{"type", "dynamic"}, {"factor", 4}};
  WriteFile(path + "/config.json", config.dump());
  const std::string base = OpenModel(path)->fingerprint;
  EXPECT_EQ(OpenModel(path, 300)->fingerprint, base);
  EXPECT_NE(OpenModel(path, 513)->fingerprint, base);
  EXPECT_NE(OpenModel(path, 513)->fingerprint,
            OpenModel(path, 600)->fingerprint);
}

TEST(OpenModel, SaysWhatAModelIsWhereThePathIsNone) {
  ExpectRefused("/no/such/model", absl::StatusCode::kNotFound,
                "there is no model /no/such/model");
  ExpectRefused(::testing::TempDir(), absl::StatusCode::kInvalidArgument,
                "is neither a folder with a config.json nor a .gguf file");
  const std::string path = NewPath(".bin");
  WriteFile(path, "weights");
  ExpectRefused(path, absl::StatusCode::kInvalidArgument,
                "is neither a folder with a config.json nor a .gguf file");
}

TEST(OpenModel, RefusesTruncatedFiles) {
  const std::string folder = NewPath(), gguf = NewPath(".gguf");
  WriteHuggingFaceFolder(TinyModel(), folder);
  WriteGguf(TinyModel(), gguf);
  for (const std::string& path : {folder + "/model.safetensors", gguf}) {
    const auto size = std::filesystem::file_size(path);
    for (const auto left : {size - 1, size / 2, size_t{100}, size_t{0}}) {
      std::filesystem::resize_file(path, left);
      const auto model = OpenModel(path == gguf ? gguf : folder);
      EXPECT_EQ(model.status().code(), absl::StatusCode::kInvalidArgument);
      EXPECT_THAT(std::string(model.status().message()), HasSubstr(path));
    }
  }
}

TEST(OpenModel, NamesTheTensorThatIsMissing) {
  TinyModel tiny;
  tiny.left_out = {"model.layers.1.self_attn.k_proj.weight"};
  const std::string folder = NewPath(), gguf = NewPath(".gguf");
  WriteHuggingFaceFolder(tiny, folder);
  WriteGguf(tiny, gguf);
  const std::string file = folder + "/model.safetensors";
  for (const auto& [path, named] :
       {std::pair(folder, file), std::pair(gguf, gguf)}) {
    EXPECT_EQ(OpenModel(path).status(),
              absl::InvalidArgumentError(
                  named +
                  ": tensor model.layers.1.self_attn.k_proj.weight is missing, "
                  "expected one of shape [32, 64]."));
  }
}

TEST(OpenModel, RefusesFoldersThatDoNotMatchTheirConfig) {
  using nlohmann::json;
  struct Case {
    const char* key;
    json value;
    absl::StatusCode code;
    const char* message;
  };
  constexpr auto kInvalid = absl::StatusCode::kInvalidArgument;
  const Case cases[] = {
      {"intermediate_size", 96, kInvalid,
       "/model.safetensors: tensor model.layers.0.mlp.gate_proj.weight has the "
       "shape [128, 64], "
       "expected [96, 64]."},
      {"vocab_size", 500, kInvalid,
       ": tensor model.embed_tokens.weight has the shape [512, 64], expected "
       "[500, 64]."},
      {"num_hidden_layers", 1, kInvalid,
       "\" is not part of a llama model of 1 layers."},
      {"num_hidden_layers", 3, kInvalid,
       ": tensor model.layers.2.input_layernorm.weight is missing, expected "
       "one of shape [64]."},
      {"architectures", json::array({"Qwen3ForCausalLM"}), kInvalid,
       ": tensor model.layers.0.self_attn.q_norm.weight is missing, expected "
       "one of shape [16]."},
      {"architectures", json::array({"MambaForCausalLM"}),
       absl::StatusCode::kUnimplemented,
       "\"MambaForCausalLM\", which is not supported; supported are dots1"},
  };
  const std::string folder = NewPath();
  WriteHuggingFaceFolder(TinyModel(), folder);
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    json config = MakeHuggingFaceConfig(TinyModel());
    config[c.key] = c.value;
    WriteFile(folder + "/config.json", config.dump());
    ExpectRefused(folder, c.code, c.message);
  }
}

TEST(OpenModel, RefusesAJsonFileThatIsNone) {
  const std::string folder = NewPath();
  WriteHuggingFaceFolder(TinyModel(), folder);
  WriteFile(folder + "/generation_config.json", "{");
  ExpectRefused(folder, absl::StatusCode::kInvalidArgument,
                "generation_config.json is not valid JSON");
  WriteFile(folder + "/config.json", "{");
  ExpectRefused(folder, absl::StatusCode::kInvalidArgument,
                "config.json is not valid JSON");
}

TEST(OpenModel, RefusesWhatAGgufFileHasTooMuch) {
  struct Case {
    std::function<void(GgufWriter&)> add;
    absl::StatusCode code;
    const char* message;
  };
  const Case cases[] = {
      {[](GgufWriter& w) {
         w.AddTensor("blk.0.attn_output.bias", {64}, 0, std::string(256, 'x'));
       },
       absl::StatusCode::kInvalidArgument,
       ": tensor \"blk.0.attn_output.bias\" is not part of a llama model of 2 "
       "layers."},
      {[](GgufWriter& w) {
         w.AddTensor("blk.0.more.weight", {2, 256}, 21, std::string(168, 'x'));
       },
       absl::StatusCode::kUnimplemented,
       ": tensor \"blk.0.more.weight\" is of ggml's type 21 (IQ3_S), which is "
       "not supported"},
      {[](GgufWriter& w) { w.AddTensorInfo("blk.0.more.weight", {9}, 0, 0); },
       absl::StatusCode::kInvalidArgument, "begins at byte"},
  };
  const std::string path = NewPath(".gguf");
  for (const Case& c : cases) {
    SCOPED_TRACE(c.message);
    GgufWriter writer = MakeGguf(TinyModel());
    c.add(writer);
    WriteFile(path, writer.Finish());
    ExpectRefused(path, c.code, c.message);
  }
}

TEST(OpenModel, RoundsMatricesAsItIsAsked) {
  TinyModel tiny;
  tiny.type = DType::kBF16;
  tiny.tied_embeddings = true;
  const std::string folder = NewPath(), gguf = NewPath(".gguf");
  WriteHuggingFaceFolder(tiny, folder);
  WriteGguf(tiny, gguf);
  for (const std::string& path : {folder, gguf}) {
    const auto exact = OpenModel(path);
    const auto q8_0 = OpenModel(path, 0, {.rounded_to = DType::kQ8_0});
    const auto q4_0 = OpenModel(path, 0, {.rounded_to = DType::kQ4_0});
    ASSERT_TRUE(q8_0.ok() && q4_0.ok()) << q8_0.status() << q4_0.status();
    EXPECT_THAT(q8_0->weight_types, ElementsAre("Q8_0", "BF16", "F32"));
    EXPECT_EQ(q4_0->row_parallel_blocks, (RowParallelBlocks{32, 32}));
    EXPECT_NE(exact->fingerprint, q8_0->fingerprint);
    EXPECT_NE(q8_0->fingerprint, q4_0->fingerprint);
    // The head is rounded, the embedding that it was is not.
    EXPECT_EQ(q4_0->tensors->Get("lm_head.weight")->type, DType::kQ4_0);
    EXPECT_EQ(q4_0->tensors->Get("model.embed_tokens.weight")->type,
              DType::kBF16);
  }
}

TEST(OpenModel, RoundsNoIntegersAndNoPartsOfBlocks) {
  TinyModel tiny;
  tiny.type = DType::kQ4_1;
  const std::string gguf = NewPath(".gguf"), folder = NewPath();
  WriteGguf(tiny, gguf);
  EXPECT_THAT(
      std::string(
          OpenModel(gguf, 0, {.rounded_to = DType::kQ8_0}).status().message()),
      HasSubstr("lm_head.weight can not be rounded to Q8_0: it is Q4_1 "
                "already, expected F32, F16 or BF16."));
  tiny.type = DType::kF32;
  tiny.hidden_size = 72;
  WriteHuggingFaceFolder(tiny, folder);
  EXPECT_THAT(
      std::string(OpenModel(folder, 0, {.rounded_to = DType::kQ4_0})
                      .status()
                      .message()),
      HasSubstr("it has rows of 72 values, expected a multiple of 32."));
}

TEST(OpenModel, MakesRandomWeightsOfAConfigAlone) {
  const std::string folder = NewPath();
  WriteFile(folder + "/config.json", MakeHuggingFaceConfig(TinyModel()).dump());
  const auto one = OpenModel(folder, 0, {.random = true});
  const auto other = OpenModel(folder, 0, {.random = true});
  ASSERT_TRUE(one.ok()) << one.status();
  EXPECT_EQ(one->fingerprint, other->fingerprint);
  EXPECT_NE(one->fingerprint,
            OpenModel(folder, 0, {.rounded_to = DType::kQ8_0, .random = true})
                ->fingerprint);
  const std::string gguf = NewPath(".gguf");
  WriteGguf(TinyModel(), gguf);
  EXPECT_THAT(
      std::string(OpenModel(gguf, 0, {.random = true}).status().message()),
      HasSubstr("--load_format is dummy, but the model"));
}

TEST(OpenModel, RefusesPartsOfWeightsThatNothingScales) {
  const std::string folder = NewPath();
  SafetensorsWriter writer;
  for (const auto& tensor : lockstep::testing::MakeTensors(TinyModel())) {
    const bool is_float8 = tensor.name == "model.layers.0.mlp.up_proj.weight";
    writer.AddTensor(tensor.name, is_float8 ? "F8_E4M3" : "F32", tensor.shape,
                     is_float8
                         ? std::string(tensor.values.size(), 'x')
                         : lockstep::testing::StoredBytes(TinyModel(), tensor));
  }
  WriteFile(folder + "/config.json", MakeHuggingFaceConfig(TinyModel()).dump());
  WriteFile(folder + "/model.safetensors", writer.Finish());
  ExpectRefused(folder, absl::StatusCode::kInvalidArgument,
                "tensor model.layers.0.mlp.up_proj.weight is of type F8_E4M3, "
                "expected weights");
}

TEST(OpenModel, TakesTensorsThatAreOfNoUse) {
  // A tied head that was saved all the same.
  const std::string folder = NewPath();
  WriteHuggingFaceFolder(TinyModel(), folder);
  nlohmann::json config = MakeHuggingFaceConfig(TinyModel());
  config["tie_word_embeddings"] = true;
  WriteFile(folder + "/config.json", config.dump());
  EXPECT_TRUE(OpenModel(folder).ok()) << OpenModel(folder).status();

  TinyModel scaled;
  scaled.llama3_rope = true;  // has rope_freqs.weight
  const std::string gguf = NewPath(".gguf");
  WriteGguf(scaled, gguf);
  EXPECT_TRUE(OpenModel(gguf).ok()) << OpenModel(gguf).status();
}

}  // namespace
}  // namespace lockstep
