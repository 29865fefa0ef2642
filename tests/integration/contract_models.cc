#include "tests/integration/contract_models.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <utility>

#include "tests/testing/tiny_gguf.h"
#include "tests/testing/tiny_model.h"
#include "worker/model_spec/shard.h"

namespace lockstep::testing {
namespace {

using kernels::DType;

TinyModel Plain(const std::string& architecture, DType type) {
  TinyModel model;
  model.architecture = architecture;
  model.type = type;
  model.vocab_size = 501;  // padded on every number of ranks but 3
  model.max_context = 1024;
  return model;
}

// Rows of whole blocks; those of o and down are eight of 32.
TinyModel Quantized(const std::string& architecture, DType type, int hidden) {
  TinyModel model = Plain(architecture, type);
  model.hidden_size = hidden;
  model.intermediate_size = 256;
  model.head_dim = 32;
  return model;
}

ContractModel Open(const std::string& name, const std::string& path,
                   int reference_ranks) {
  auto files = OpenModel(path);
  CHECK(files.ok()) << files.status();
  ContractModel model{
      .name = name, .files = *std::move(files), .num_ranks = {reference_ranks}};
  for (const int size :
       IdenticalSizes(model.files.config, model.files.row_parallel_blocks,
                      reference_ranks)) {
    if (size != reference_ranks) model.num_ranks.push_back(size);
  }
  return model;
}

}  // namespace

std::vector<ContractModel> MakeContractModels(const std::string& folder) {
  std::vector<ContractModel> models;
  const auto add_folder = [&](const std::string& name, const TinyModel& model,
                              int reference_ranks) {
    const std::string path = absl::StrCat(folder, "/", name);
    WriteHuggingFaceFolder(model, path);
    models.push_back(Open(name, path, reference_ranks));
  };
  const auto add_gguf = [&](const std::string& name, const TinyModel& model) {
    const std::string path = absl::StrCat(folder, "/", name, ".gguf");
    WriteGguf(model, path);
    models.push_back(Open(name, path, /*reference_ranks=*/1));
  };

  TinyModel llama = Plain("llama", DType::kF32);
  llama.llama3_rope = true;
  add_folder("llama-f32", llama, 1);
  TinyModel qwen = Plain("qwen3", DType::kBF16);
  qwen.tied_embeddings = true;
  add_folder("qwen3-bf16", qwen, 1);
  TinyModel gemma = Plain("gemma3", DType::kBF16);
  gemma.window = 40;
  gemma.tied_embeddings = true;
  add_folder("gemma3-bf16", gemma, 1);
  add_folder("olmo2-f16", Plain("olmo2", DType::kF16), 1);
  add_folder("qwen2moe-bf16", Plain("qwen2moe", DType::kBF16), 1);
  // No power of two divides nine heads: the contract holds on three ranks.
  TinyModel nine = Plain("llama", DType::kF16);
  nine.num_heads = 9;
  nine.num_kv_heads = 3;
  nine.hidden_size = 72;
  add_folder("nine-heads-f16", nine, 3);

  add_gguf("llama-q8_0", Quantized("llama", DType::kQ8_0, 64));
  add_gguf("qwen3-q4_1", Quantized("qwen3", DType::kQ4_1, 96));
  add_gguf("llama-q4_0", Quantized("llama", DType::kQ4_0, 64));
  // A row of o or down is but one block of 256 of them: one rank.
  add_gguf("llama-q6_k", Quantized("llama", DType::kQ6_K, 256));
  TinyModel q4_k = Quantized("qwen3", DType::kQ4_K, 256);
  q4_k.row_parallel_type = DType::kQ8_0;
  add_gguf("qwen3-q4_k", q4_k);
  TinyModel q5_k = Quantized("llama", DType::kQ5_K, 256);
  q5_k.row_parallel_type = DType::kQ4_1;
  add_gguf("llama-q5_k", q5_k);
  return models;
}

std::vector<Configuration> AllConfigurations(
    const std::vector<ContractModel>& models) {
  std::vector<Configuration> configurations;
  for (const ContractModel& model : models) {
    for (const auto arithmetic :
         {kernels::Arithmetic::kStrict, kernels::Arithmetic::kFast}) {
      for (const auto kv_type : kernels::kKvTypes) {
        configurations.push_back({&model, arithmetic, kv_type});
      }
    }
  }
  return configurations;
}

std::string Describe(const Configuration& configuration) {
  return absl::StrCat(configuration.model->name, " ",
                      kernels::ArithmeticName(configuration.arithmetic), " ",
                      kernels::KvTypeName(configuration.kv_type));
}

}  // namespace lockstep::testing
