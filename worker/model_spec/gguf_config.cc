#include "worker/model_spec/gguf_config.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "common/status_macros.h"
#include "worker/model_spec/architecture.h"
#include "worker/model_spec/config_limits.h"
#include "worker/model_spec/gguf_keys.h"
#include "worker/model_spec/gguf_reader.h"
#include "worker/model_spec/gguf_rope.h"

namespace lockstep {
namespace {

// Known keys whose value may ask for what the decoder lacks.
absl::Status RefuseOptions(const GgufReader& reader,
                           const Architecture& architecture) {
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnknownGgufKeys(reader, architecture));
  constexpr char kLinear[] = "rope.scale_linear";
  LOCKSTEP_ASSIGN_OR_RETURN(const float factor,
                            reader.FloatOr(kLinear, 0, kMaxRopeFactor, 1));
  if (factor != 1) return reader.Unsupported(kLinear, "only 1 is");
  if (const auto* causal = reader.file().Find(reader.Key("attention.causal"))) {
    if (*causal != GgufFile::Value(true)) {
      return reader.Unsupported("attention.causal", "only true is");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadHeads(const GgufReader& reader,
                       const Architecture& architecture, ModelConfig* config) {
  const auto CheckIsHeadDim = [&](const char* name, int size) {
    if (size == config->head_dim) return absl::OkStatus();
    return reader.Unsupported(
        name, absl::StrCat("only the size of a head, ", config->head_dim,
                           ", is, found ", size));
  };
  LOCKSTEP_ASSIGN_OR_RETURN(config->num_heads,
                            reader.Int("attention.head_count", 1, kMaxHeads));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->num_kv_heads,
      reader.IntOr("attention.head_count_kv", 1, kMaxHeads, config->num_heads));
  if (!reader.Has("attention.key_length") &&
      config->hidden_size % config->num_heads != 0) {
    return reader.Unexpected(
        "embedding_length", config->hidden_size,
        absl::StrCat("a multiple of ", config->num_heads, " heads"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->head_dim, reader.IntOr("attention.key_length", 1, kMaxHeadDim,
                                     config->hidden_size / config->num_heads));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->rope.rotary_dim,
      reader.IntOr("rope.dimension_count", 1, kMaxHeadDim, config->head_dim));
  if (!architecture.Takes("partial_rotary_factor")) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckIsHeadDim("rope.dimension_count", config->rope.rotary_dim));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int value_length,
      reader.IntOr("attention.value_length", 1, kMaxHeadDim, config->head_dim));
  return CheckIsHeadDim("attention.value_length", value_length);
}

// A window is one of all layers, or of all but every n-th.
absl::Status ReadLayers(const GgufReader& reader,
                        const Architecture& architecture, ModelConfig* config) {
  constexpr char kWindow[] = "attention.sliding_window";
  LOCKSTEP_ASSIGN_OR_RETURN(const int window,
                            reader.IntOr(kWindow, 0, kMaxContext, 0));
  if (window != 0 && architecture.windows != Architecture::Windows::kAlways) {
    return reader.Unsupported(kWindow, "only 0 is");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int interval, reader.IntOr(gguf_keys::kWindowPattern, 1, kMaxLayers,
                                       architecture.full_attention_interval));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int dense, reader.IntOr(gguf_keys::kDenseLayers, 0, kMaxLayers, 0));
  for (int i = 0; i < config->num_layers; ++i) {
    const bool full = interval > 0 && (i + 1) % interval == 0;
    config->layers.push_back(
        {.window = full ? 0 : window,
         .has_rope =
             !architecture.has_no_rope_layers || HasRope(i, kNoRopeInterval),
         .local_rope = architecture.local_rope && window > 0 && !full,
         .has_experts = architecture.has_experts && i >= dense});
  }
  return absl::OkStatus();
}

absl::Status ReadSizes(const GgufReader& reader,
                       const Architecture& architecture, ModelConfig* config) {
  LOCKSTEP_ASSIGN_OR_RETURN(config->hidden_size,
                            reader.Int("embedding_length", 1, kMaxHiddenSize));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->intermediate_size,
      reader.Int("feed_forward_length", 1, kMaxIntermediateSize));
  // Those that guess are the last of all.
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->num_guessing_layers,
      reader.IntOr(gguf_keys::kGuessingLayers, 0, kMaxLayers, 0));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int blocks,
      reader.Int("block_count", config->num_guessing_layers + 1, kMaxLayers));
  config->num_layers = blocks - config->num_guessing_layers;
  LOCKSTEP_ASSIGN_OR_RETURN(config->max_context,
                            reader.Int("context_length", 1, kMaxContext));
  if (reader.Has("vocab_size")) {
    LOCKSTEP_ASSIGN_OR_RETURN(config->vocab_size,
                              reader.Int("vocab_size", 1, kMaxVocabSize));
    return ReadHeads(reader, architecture, config);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const GgufFile::Strings* tokens,
                            reader.file().GetStrings("tokenizer.ggml.tokens"));
  if (tokens->empty() || tokens->size() > kMaxVocabSize) {
    return absl::InvalidArgumentError(absl::StrCat(
        reader.file().path(), ": tokenizer.ggml.tokens has ", tokens->size(),
        " tokens, expected 1 to ", kMaxVocabSize, "."));
  }
  config->vocab_size = static_cast<int>(tokens->size());
  return ReadHeads(reader, architecture, config);
}

// Whether a layer's router has biases, which are a tensor.
bool HasChoiceBias(const GgufFile& file, const ModelConfig& config) {
  for (int i = 0; i < config.num_layers; ++i) {
    if (!config.layers[i].has_experts) continue;
    const std::string name = absl::StrCat("blk.", i, ".exp_probs_b.bias");
    return file.tensors().count(name) > 0;
  }
  return false;
}

absl::Status ReadRouter(const GgufReader& reader,
                        const Architecture& architecture, ModelConfig* config) {
  ExpertsConfig& experts = config->experts;
  // llama.cpp's numbers: 1 is the softmax, 2 the sigmoid.
  const int expected = architecture.sigmoid_router ? 2 : 1;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int scoring,
      reader.IntOr(gguf_keys::kExpertScoring, 0, 255, expected));
  if (scoring != expected) {
    return reader.Unsupported(gguf_keys::kExpertScoring,
                              absl::StrCat("only ", expected, " is"));
  }
  if (!architecture.sigmoid_router) return absl::OkStatus();
  experts.choice_bias = HasChoiceBias(reader.file(), *config);
  LOCKSTEP_ASSIGN_OR_RETURN(
      experts.weight_scale,
      reader.FloatOr(gguf_keys::kExpertScale, 0, kMaxScale, 1));
  LOCKSTEP_ASSIGN_OR_RETURN(
      experts.num_groups,
      reader.IntOr(gguf_keys::kExpertGroups, 1, kMaxExperts, 1));
  LOCKSTEP_ASSIGN_OR_RETURN(experts.groups_per_token,
                            reader.IntOr(gguf_keys::kGroupsPerToken, 1,
                                         kMaxExperts, experts.num_groups));
  return absl::OkStatus();
}

absl::Status ReadSharedExpert(const GgufReader& reader,
                              const Architecture& architecture,
                              ModelConfig* config) {
  using SharedExpert = Architecture::SharedExpert;
  ExpertsConfig& experts = config->experts;
  if (architecture.shared_expert == SharedExpert::kGated) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        experts.shared_intermediate_size,
        reader.IntOr(gguf_keys::kSharedExpertSize, 1, kMaxIntermediateSize,
                     config->intermediate_size));
  } else if (architecture.shared_expert == SharedExpert::kCounted) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const int count,
        reader.IntOr(gguf_keys::kSharedExperts, 0,
                     kMaxIntermediateSize / experts.intermediate_size, 0));
    experts.shared_intermediate_size = count * experts.intermediate_size;
  }
  return absl::OkStatus();
}

absl::Status ReadExperts(const GgufReader& reader,
                         const Architecture& architecture,
                         ModelConfig* config) {
  ExpertsConfig& experts = config->experts;
  LOCKSTEP_ASSIGN_OR_RETURN(experts.num_experts,
                            reader.Int("expert_count", 1, kMaxExperts));
  LOCKSTEP_ASSIGN_OR_RETURN(experts.experts_per_token,
                            reader.Int("expert_used_count", 1, kMaxExperts));
  LOCKSTEP_ASSIGN_OR_RETURN(
      experts.intermediate_size,
      reader.IntOr(gguf_keys::kExpertSize, 1, kMaxIntermediateSize,
                   config->intermediate_size));
  if (const auto* value =
          reader.file().Find(reader.Key(gguf_keys::kRenormalize))) {
    experts.renormalize = *value == GgufFile::Value(true);
  }
  LOCKSTEP_RETURN_IF_ERROR(ReadRouter(reader, architecture, config));
  return ReadSharedExpert(reader, architecture, config);
}

// What q·k is multiplied by, where no key says it. Of Gemma's models the
// largest, told by its layers, divides by the size of a head as if all of the
// hidden state were heads (llama.cpp's LLM_TYPE_27B).
float QueryScale(const ModelConfig& config) {
  const bool largest =
      (config.architecture == "gemma2" && config.num_layers == 46) ||
      (config.architecture == "gemma3" && config.num_layers == 62);
  const float size =
      largest ? config.hidden_size / config.num_heads : config.head_dim;
  return 1 / std::sqrt(size);
}

absl::Status ReadScales(const GgufReader& reader,
                        const Architecture& architecture, ModelConfig* config) {
  LOCKSTEP_ASSIGN_OR_RETURN(config->query_scale,
                            reader.FloatOr(gguf_keys::kAttentionScale, 0,
                                           kMaxScale, QueryScale(*config)));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->embedding_scale,
      reader.FloatOr("embedding_scale", 0, kMaxScale,
                     architecture.scaled_embedding
                         ? std::sqrt(static_cast<float>(config->hidden_size))
                         : 1));
  LOCKSTEP_ASSIGN_OR_RETURN(config->residual_scale,
                            reader.FloatOr("residual_scale", 0, kMaxScale, 1));
  LOCKSTEP_ASSIGN_OR_RETURN(config->logit_divisor,
                            reader.FloatOr("logit_scale", 0, kMaxScale, 1));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->score_cap, reader.FloatOr("attn_logit_softcapping", 0, kMaxScale,
                                        architecture.gguf_score_cap));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->logit_cap, reader.FloatOr("final_logit_softcapping", 0, kMaxScale,
                                        architecture.gguf_logit_cap));
  return absl::OkStatus();
}

// An id of the tokenizer; absent where it is absent.
absl::StatusOr<std::optional<uint32_t>> ReadTokenId(const GgufFile& file,
                                                    absl::string_view key,
                                                    int vocab_size) {
  if (file.Find(key) == nullptr) return std::optional<uint32_t>();
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t id, file.GetUint(key));
  if (id < static_cast<uint64_t>(vocab_size)) {
    return std::optional<uint32_t>(static_cast<uint32_t>(id));
  }
  return absl::InvalidArgumentError(
      absl::StrCat(file.path(), ": the metadata \"", key, "\" is ", id,
                   ", expected an id below ", vocab_size, "."));
}

absl::Status ReadTokenIds(const GgufFile& file, ModelConfig* config) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->bos_token_id,
      ReadTokenId(file, "tokenizer.ggml.bos_token_id", config->vocab_size));
  // The end of a text, of a turn, of a message.
  for (const char* key :
       {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id",
        "tokenizer.ggml.eom_token_id"}) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto id,
                              ReadTokenId(file, key, config->vocab_size));
    auto& ids = config->eos_token_ids;
    if (id.has_value() && std::find(ids.begin(), ids.end(), *id) == ids.end()) {
      ids.push_back(*id);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ModelConfig> ConfigFromGguf(const GgufFile& file) {
  LOCKSTEP_ASSIGN_OR_RETURN(const Architecture* architecture,
                            GgufArchitecture(file));
  const GgufReader reader(file);
  LOCKSTEP_RETURN_IF_ERROR(RefuseOptions(reader, *architecture));
  ModelConfig config = ConfigOf(*architecture);
  LOCKSTEP_RETURN_IF_ERROR(ReadSizes(reader, *architecture, &config));
  LOCKSTEP_RETURN_IF_ERROR(ReadLayers(reader, *architecture, &config));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config.norm_eps,
      reader.Float("attention.layer_norm_rms_epsilon", 0, kMaxNormEps));
  config.tied_embeddings = file.tensors().count("output.weight") == 0;
  config.fused_qkv |= file.tensors().count("blk.0.attn_qkv.weight") > 0;
  if (architecture->qkv_bias_key != nullptr) {
    config.qkv_bias = file.tensors().count("blk.0.attn_q.bias") > 0 ||
                      file.tensors().count("blk.0.attn_qkv.bias") > 0;
  }
  if (architecture->qk_norm_key != nullptr) {
    config.qk_norm = file.tensors().count("blk.0.attn_q_norm.weight") > 0;
  }
  if (architecture->has_experts) {
    LOCKSTEP_RETURN_IF_ERROR(ReadExperts(reader, *architecture, &config));
  }
  LOCKSTEP_RETURN_IF_ERROR(ReadScales(reader, *architecture, &config));
  LOCKSTEP_RETURN_IF_ERROR(ReadGgufRope(reader, *architecture, &config));
  LOCKSTEP_RETURN_IF_ERROR(ReadTokenIds(file, &config));
  LOCKSTEP_RETURN_IF_ERROR(CheckConfig(config, file.path()));
  return config;
}

}  // namespace lockstep
