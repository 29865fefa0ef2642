#include "tests/testing/tiny_model.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "tests/testing/encode_row.h"
#include "tests/testing/safetensors_writer.h"
#include "tests/testing/write_file.h"

namespace lockstep::testing {
namespace {

using kernels::DType;

// Steele, Lea and Flood, "Fast splittable pseudorandom number generators".
class SplitMix {
 public:
  explicit SplitMix(uint64_t seed) : state_(seed) {}

  // In [-1, 1).
  float Next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    z ^= z >> 31;
    return static_cast<float>(z >> 40) * 0x1p-23f - 1;
  }

 private:
  uint64_t state_;
};

// FNV-1a.
uint64_t HashOf(const std::string& name, uint64_t seed) {
  uint64_t hash = 0xcbf29ce484222325 ^ seed;
  for (const char c : name) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  return hash;
}

// Norms lie around 1; matrices keep the size of what they multiply.
TinyTensor MakeTensor(const TinyModel& model, const std::string& name,
                      const std::vector<int64_t>& shape) {
  const bool is_norm = shape.size() == 1;
  const float scale = is_norm ? 0.25f : 2 / std::sqrt(float(shape.back()));
  int64_t size = 1;
  for (const int64_t dimension : shape) size *= dimension;
  SplitMix random(HashOf(name, model.seed));
  TinyTensor tensor{name, shape, std::vector<float>(size)};
  for (float& value : tensor.values) {
    value = (is_norm ? 1 : 0) + scale * random.Next();
  }
  return tensor;
}

const char* SafetensorsType(DType type) {
  return type == DType::kF32 ? "F32" : type == DType::kF16 ? "F16" : "BF16";
}

constexpr int kExperts = 6;
constexpr int kExpertsPerToken = 2;

// Shapes by name, of a layer's parts that differ between architectures.
using Shapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;

Shapes NormsOf(const TinyModel& model) {
  const std::vector<int64_t> hidden = {model.hidden_size};
  const int64_t q = int64_t{model.num_heads} * model.head_dim;
  const int64_t kv = int64_t{model.num_kv_heads} * model.head_dim;
  Shapes norms = {{"post_attention_layernorm", hidden}};
  if (model.architecture == "olmo2") {
    norms.push_back({"post_feedforward_layernorm", hidden});
    norms.push_back({"self_attn.q_norm", {q}});
    norms.push_back({"self_attn.k_norm", {kv}});
    return norms;
  }
  norms.push_back({"input_layernorm", hidden});
  if (model.architecture == "gemma3") {
    norms.push_back({"pre_feedforward_layernorm", hidden});
    norms.push_back({"post_feedforward_layernorm", hidden});
  }
  if (model.architecture == "gemma3" || model.architecture == "qwen3") {
    norms.push_back({"self_attn.q_norm", {model.head_dim}});
    norms.push_back({"self_attn.k_norm", {model.head_dim}});
  }
  return norms;
}

void AddMlp(const std::string& prefix, int64_t intermediate, int64_t hidden,
            Shapes* shapes) {
  shapes->push_back({prefix + "gate_proj", {intermediate, hidden}});
  shapes->push_back({prefix + "up_proj", {intermediate, hidden}});
  shapes->push_back({prefix + "down_proj", {hidden, intermediate}});
}

Shapes MlpOf(const TinyModel& model) {
  const int64_t hidden = model.hidden_size, mlp = model.intermediate_size;
  Shapes shapes;
  if (model.architecture == "phi3") {
    shapes.push_back({"mlp.gate_up_proj", {2 * mlp, hidden}});
    shapes.push_back({"mlp.down_proj", {hidden, mlp}});
  } else if (model.architecture == "qwen2moe") {
    shapes.push_back({"mlp.gate", {kExperts, hidden}});
    for (int i = 0; i < kExperts; ++i) {
      AddMlp(absl::StrCat("mlp.experts.", i, "."), mlp / 2, hidden, &shapes);
    }
    AddMlp("mlp.shared_expert.", mlp, hidden, &shapes);
    shapes.push_back({"mlp.shared_expert_gate", {1, hidden}});
  } else {
    AddMlp("mlp.", mlp, hidden, &shapes);
  }
  return shapes;
}

}  // namespace

DType StoredType(const TinyModel& model, const TinyTensor& tensor) {
  if (tensor.shape.size() == 1) return DType::kF32;
  const DType row_parallel = model.row_parallel_type.value_or(model.type);
  if (absl::StrContains(tensor.name, "o_proj")) return row_parallel;
  if (absl::StrContains(tensor.name, "down_proj")) {
    return model.down_type.value_or(row_parallel);
  }
  return model.type;
}

std::string StoredBytes(const TinyModel& model, const TinyTensor& tensor) {
  const DType type = StoredType(model, tensor);
  const size_t cols = tensor.shape.back();
  std::string bytes;
  for (size_t i = 0; i < tensor.values.size(); i += cols) {
    bytes += EncodeRow(type, absl::MakeConstSpan(&tensor.values[i], cols));
  }
  return bytes;
}

std::vector<TinyTensor> MakeTensors(const TinyModel& model) {
  const int64_t hidden = model.hidden_size;
  const int64_t q = int64_t{model.num_heads} * model.head_dim;
  const int64_t kv = int64_t{model.num_kv_heads} * model.head_dim;
  std::vector<TinyTensor> tensors;
  const auto add = [&](const std::string& name,
                       const std::vector<int64_t>& shape) {
    if (std::count(model.left_out.begin(), model.left_out.end(), name) == 0) {
      tensors.push_back(MakeTensor(model, name, shape));
    }
  };
  add("model.embed_tokens.weight", {model.vocab_size, hidden});
  if (model.nan_token_id.has_value()) {
    const auto row =
        tensors.back().values.begin() + *model.nan_token_id * hidden;
    std::fill(row, row + hidden, std::numeric_limits<float>::quiet_NaN());
  }
  for (int i = 0; i < model.num_layers; ++i) {
    const std::string layer = absl::StrCat("model.layers.", i, ".");
    if (model.architecture == "phi3") {
      add(layer + "self_attn.qkv_proj.weight", {q + 2 * kv, hidden});
    } else {
      add(layer + "self_attn.q_proj.weight", {q, hidden});
      add(layer + "self_attn.k_proj.weight", {kv, hidden});
      add(layer + "self_attn.v_proj.weight", {kv, hidden});
    }
    if (model.architecture == "qwen2" || model.architecture == "qwen2moe") {
      add(layer + "self_attn.q_proj.bias", {q});
      add(layer + "self_attn.k_proj.bias", {kv});
      add(layer + "self_attn.v_proj.bias", {kv});
    }
    add(layer + "self_attn.o_proj.weight", {hidden, q});
    for (const Shapes& shapes : {NormsOf(model), MlpOf(model)}) {
      for (const auto& [name, shape] : shapes) {
        add(absl::StrCat(layer, name, ".weight"), shape);
      }
    }
  }
  add("model.norm.weight", {hidden});
  if (!model.tied_embeddings && !model.without_head)
    add("lm_head.weight", {model.vocab_size, hidden});
  return tensors;
}

nlohmann::json MakeHuggingFaceConfig(const TinyModel& model) {
  static const std::map<std::string, std::string> kNames = {
      {"gemma3", "Gemma3"},     {"llama", "Llama"}, {"mistral", "Mistral"},
      {"olmo2", "Olmo2"},       {"phi3", "Phi3"},   {"qwen2", "Qwen2"},
      {"qwen2moe", "Qwen2Moe"}, {"qwen3", "Qwen3"}, {"smollm3", "SmolLM3"}};
  const std::string base =
      model.architecture == "gemma3" ? "TextModel" : "Model";
  nlohmann::json config = {{"architectures",
                            {kNames.at(model.architecture) +
                             (model.without_head ? base : "ForCausalLM")}},
                           {"model_type", model.architecture},
                           {"attention_bias", false},
                           {"bos_token_id", model.bos_token_id},
                           {"eos_token_id", model.eos_token_id},
                           {"head_dim", model.head_dim},
                           {"hidden_act", "silu"},
                           {"hidden_size", model.hidden_size},
                           {"intermediate_size", model.intermediate_size},
                           {"max_position_embeddings", model.max_context},
                           {"num_attention_heads", model.num_heads},
                           {"num_hidden_layers", model.num_layers},
                           {"num_key_value_heads", model.num_kv_heads},
                           {"rms_norm_eps", 1e-6},
                           {"rope_theta", model.rope_theta},
                           {"rope_scaling", nullptr},
                           {"tie_word_embeddings", model.tied_embeddings},
                           {"vocab_size", model.vocab_size}};
  if (model.window > 0) config["sliding_window"] = model.window;
  if (model.architecture == "gemma3") {
    config["hidden_act"] = "gelu_pytorch_tanh";
    config["sliding_window_pattern"] = 2;
  }
  if (model.architecture == "qwen2moe") {
    config["num_experts"] = kExperts;
    config["num_experts_per_tok"] = kExpertsPerToken;
    config["moe_intermediate_size"] = model.intermediate_size / 2;
    config["shared_expert_intermediate_size"] = model.intermediate_size;
  }
  if (model.llama3_rope) {
    config["rope_scaling"] = {{"rope_type", "llama3"},
                              {"factor", 8.0},
                              {"low_freq_factor", 1.0},
                              {"high_freq_factor", 4.0},
                              {"original_max_position_embeddings", 64}};
  }
  return config;
}

void WriteHuggingFaceFolder(const TinyModel& model, const std::string& folder,
                            int num_files) {
  WriteFile(folder + "/config.json", MakeHuggingFaceConfig(model).dump(1));
  const std::vector<TinyTensor> tensors = MakeTensors(model);
  nlohmann::json weight_map;
  size_t next = 0;
  for (int i = 0; i < num_files; ++i) {
    const std::string name =
        num_files == 1 ? "model.safetensors"
                       : absl::StrFormat("model-%05d-of-%05d.safetensors",
                                         i + 1, num_files);
    SafetensorsWriter writer;
    for (; next < tensors.size() * (i + 1) / num_files; ++next) {
      const TinyTensor& tensor = tensors[next];
      const std::string stored_name(
          model.without_head ? absl::StripPrefix(tensor.name, "model.")
                             : tensor.name);
      writer.AddTensor(stored_name, SafetensorsType(StoredType(model, tensor)),
                       tensor.shape, StoredBytes(model, tensor));
      weight_map[stored_name] = name;
    }
    WriteFile(folder + "/" + name, writer.Finish());
  }
  if (num_files == 1) return;
  const nlohmann::json index = {{"metadata", nlohmann::json::object()},
                                {"weight_map", weight_map}};
  WriteFile(folder + "/model.safetensors.index.json", index.dump(1));
}

}  // namespace lockstep::testing
