#include "worker/model_spec/gguf_config.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <iterator>
#include <string>

#include "common/status_macros.h"
#include "worker/model_spec/config_limits.h"
#include "worker/model_spec/gguf_rope_factors.h"

namespace lockstep {
namespace {

// Keys "ARCHITECTURE.…" that are read here or that change nothing.
constexpr absl::string_view kKnownKeys[] = {
    "attention.causal",
    "attention.head_count",
    "attention.head_count_kv",
    "attention.key_length",
    "attention.layer_norm_rms_epsilon",
    "attention.sliding_window",
    "attention.value_length",
    "block_count",
    "context_length",
    "embedding_length",
    "expert_count",
    "expert_used_count",
    "feed_forward_length",
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
    "rope.scaling.factor",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    "tensor_data_layout",
    "vocab_size",
};

// The metadata of one architecture.
class Reader {
 public:
  Reader(const GgufFile& file, const std::string& architecture)
      : file_(file), prefix_(architecture + ".") {}

  std::string Key(absl::string_view name) const {
    return absl::StrCat(prefix_, name);
  }
  bool Has(absl::string_view name) const {
    return file_.Find(Key(name)) != nullptr;
  }

  absl::StatusOr<int> Int(absl::string_view name, uint64_t least,
                          uint64_t most) const {
    LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t value, file_.GetUint(Key(name)));
    if (value >= least && value <= most) return static_cast<int>(value);
    return Unexpected(name, value,
                      absl::StrCat("an integer from ", least, " to ", most));
  }

  absl::StatusOr<int> IntOr(absl::string_view name, uint64_t least,
                            uint64_t most, int otherwise) const {
    if (!Has(name)) return otherwise;
    return Int(name, least, most);
  }

  absl::StatusOr<float> Float(absl::string_view name, double above,
                              double most) const {
    LOCKSTEP_ASSIGN_OR_RETURN(const double value, file_.GetDouble(Key(name)));
    // A tiny value may be 0 as a float.
    if (static_cast<float>(value) > above && value <= most) {
      return static_cast<float>(value);
    }
    return Unexpected(
        name, value,
        absl::StrCat("a number above ", above, " and up to ", most));
  }

  absl::Status Unexpected(absl::string_view name, const absl::AlphaNum& value,
                          absl::string_view expected) const {
    return absl::InvalidArgumentError(
        absl::StrCat(file_.path(), ": the metadata \"", Key(name), "\" is ",
                     value, ", expected ", expected, "."));
  }

  absl::Status Unsupported(absl::string_view name,
                           absl::string_view supported) const {
    return absl::UnimplementedError(absl::StrCat(
        file_.path(), ": the metadata \"", absl::CHexEscape(Key(name)),
        "\" asks for something that is not supported; ", supported, "."));
  }

  absl::Status RefuseUnknownKeys() const {
    for (const auto& [key, value] : file_.metadata()) {
      absl::string_view name = key;
      if (!absl::ConsumePrefix(&name, prefix_)) continue;
      if (std::find(std::begin(kKnownKeys), std::end(kKnownKeys), name) ==
          std::end(kKnownKeys)) {
        return Unsupported(name, "only models without it are");
      }
    }
    return absl::OkStatus();
  }

 private:
  const GgufFile& file_;
  const std::string prefix_;
};

// Known keys whose value may ask for what the decoder lacks.
absl::Status RefuseOptions(const GgufFile& file, const Reader& reader) {
  LOCKSTEP_RETURN_IF_ERROR(reader.RefuseUnknownKeys());
  LOCKSTEP_ASSIGN_OR_RETURN(const int experts,
                            reader.IntOr("expert_count", 0, kMaxContext, 0));
  if (experts != 0) return reader.Unsupported("expert_count", "only 0 is");
  for (const char* name : {"rope.scale_linear", "rope.scaling.attn_factor"}) {
    if (!reader.Has(name)) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const float factor,
                              reader.Float(name, 0, kMaxRopeFactor));
    if (factor != 1) return reader.Unsupported(name, "only 1 is");
  }
  if (const auto* causal = file.Find(reader.Key("attention.causal"))) {
    if (*causal != GgufFile::Value(true)) {
      return reader.Unsupported("attention.causal", "only true is");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadHeads(const Reader& reader, const Architecture& architecture,
                       ModelConfig* config) {
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
  if (!architecture.partial_rope) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckIsHeadDim("rope.dimension_count", config->rope.rotary_dim));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const int value_length,
      reader.IntOr("attention.value_length", 1, kMaxHeadDim, config->head_dim));
  return CheckIsHeadDim("attention.value_length", value_length);
}

// Its presence in a file says that all layers see a window.
absl::Status ReadLayers(const Reader& reader, const Architecture& architecture,
                        ModelConfig* config) {
  constexpr char kWindow[] = "attention.sliding_window";
  LOCKSTEP_ASSIGN_OR_RETURN(const int window,
                            reader.IntOr(kWindow, 0, kMaxContext, 0));
  if (window != 0 && architecture.windows != Architecture::Windows::kAlways) {
    return reader.Unsupported(kWindow, "only 0 is");
  }
  for (int i = 0; i < config->num_layers; ++i) {
    config->attention.push_back({.window = window,
                                 .has_rope = !architecture.has_no_rope_layers ||
                                             HasRope(i, kNoRopeInterval)});
  }
  return absl::OkStatus();
}

absl::Status ReadScaling(const GgufFile& file, const Reader& reader,
                         ModelConfig* config) {
  RopeConfig& rope = config->rope;
  constexpr char kOriginal[] = "rope.scaling.original_context_length";
  absl::string_view type = "none";
  if (reader.Has("rope.scaling.type")) {
    LOCKSTEP_ASSIGN_OR_RETURN(type,
                              file.GetString(reader.Key("rope.scaling.type")));
  }
  if (reader.Has("rope.scaling.factor")) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        rope.factor, reader.Float("rope.scaling.factor", 0, kMaxRopeFactor));
  }
  if (type == "none") {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const int original,
        reader.IntOr(kOriginal, 1, kMaxContext, kLlama3OriginalContext));
    if (rope.factor != 1) {
      return reader.Unsupported("rope.scaling.factor",
                                "only 1 is where rope.scaling.type is none");
    }
    return ReadRopeFactors(file, original, &rope);
  }
  if (type == "linear") {
    rope.scaling = RopeConfig::Scaling::kLinear;
    return absl::OkStatus();
  }
  if (type != "yarn") {
    return reader.Unsupported("rope.scaling.type",
                              "only none, linear and yarn are");
  }
  rope.scaling = RopeConfig::Scaling::kYarn;
  rope.attention_factor = YarnAttentionFactor(rope.factor);
  LOCKSTEP_ASSIGN_OR_RETURN(
      rope.original_max_position,
      reader.IntOr(kOriginal, 1, kMaxContext, config->max_context));
  return absl::OkStatus();
}

absl::Status ReadSizes(const GgufFile& file, const Reader& reader,
                       const Architecture& architecture, ModelConfig* config) {
  LOCKSTEP_ASSIGN_OR_RETURN(config->hidden_size,
                            reader.Int("embedding_length", 1, kMaxHiddenSize));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->intermediate_size,
      reader.Int("feed_forward_length", 1, kMaxIntermediateSize));
  LOCKSTEP_ASSIGN_OR_RETURN(config->num_layers,
                            reader.Int("block_count", 1, kMaxLayers));
  LOCKSTEP_ASSIGN_OR_RETURN(config->max_context,
                            reader.Int("context_length", 1, kMaxContext));
  if (reader.Has("vocab_size")) {
    LOCKSTEP_ASSIGN_OR_RETURN(config->vocab_size,
                              reader.Int("vocab_size", 1, kMaxVocabSize));
    return ReadHeads(reader, architecture, config);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const GgufFile::Strings* tokens,
                            file.GetStrings("tokenizer.ggml.tokens"));
  if (tokens->empty() || tokens->size() > kMaxVocabSize) {
    return absl::InvalidArgumentError(absl::StrCat(
        file.path(), ": tokenizer.ggml.tokens has ", tokens->size(),
        " tokens, expected 1 to ", kMaxVocabSize, "."));
  }
  config->vocab_size = static_cast<int>(tokens->size());
  return ReadHeads(reader, architecture, config);
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
  LOCKSTEP_ASSIGN_OR_RETURN(const absl::string_view name,
                            file.GetString("general.architecture"));
  const Architecture* architecture = FindArchitecture(std::string(name));
  if (architecture == nullptr || name != architecture->name) {
    return UnsupportedArchitecture(file.path(), std::string(name));
  }
  const Reader reader(file, architecture->name);
  LOCKSTEP_RETURN_IF_ERROR(RefuseOptions(file, reader));
  ModelConfig config = ConfigOf(*architecture);
  LOCKSTEP_RETURN_IF_ERROR(ReadSizes(file, reader, *architecture, &config));
  LOCKSTEP_RETURN_IF_ERROR(ReadLayers(reader, *architecture, &config));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config.norm_eps,
      reader.Float("attention.layer_norm_rms_epsilon", 0, kMaxNormEps));
  config.tied_embeddings = file.tensors().count("output.weight") == 0;
  config.rope.style = architecture->gguf_rope_style;
  if (reader.Has("rope.freq_base")) {
    LOCKSTEP_ASSIGN_OR_RETURN(config.rope.theta,
                              reader.Float("rope.freq_base", 1, kMaxRopeTheta));
  }
  LOCKSTEP_RETURN_IF_ERROR(ReadScaling(file, reader, &config));
  LOCKSTEP_RETURN_IF_ERROR(ReadTokenIds(file, &config));
  LOCKSTEP_RETURN_IF_ERROR(CheckConfig(config, file.path()));
  return config;
}

}  // namespace lockstep
