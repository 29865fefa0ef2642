#include "worker/model_spec/gguf_keys.h"

#include <absl/strings/string_view.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <iterator>

namespace lockstep {
namespace {

// Keys "ARCHITECTURE.…" of any model: those that are read, or change nothing.
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
    gguf_keys::kPoolingType,
    "rope.dimension_count",
    "rope.freq_base",
    "rope.scale_linear",
    "rope.scaling.attn_factor",
    "rope.scaling.factor",
    "rope.scaling.finetuned",
    "rope.scaling.original_context_length",
    "rope.scaling.type",
    gguf_keys::kYarnBetaFast,
    gguf_keys::kYarnBetaSlow,
    gguf_keys::kYarnExtFactor,
    "tensor_data_layout",
    "vocab_size",
};

// And those that only some architectures may have: whose option (of
// architecture.h) they are.
struct OptionKey {
  const char* key;
  const char* option;
};
constexpr OptionKey kOptionKeys[] = {
    {"attn_logit_softcapping", "attn_logit_softcapping"},
    {"final_logit_softcapping", "final_logit_softcapping"},
    {gguf_keys::kAttentionScale, "query_pre_attn_scalar"},
    {gguf_keys::kAttentionScale, "attention_multiplier"},
    {"embedding_scale", "embedding_multiplier"},
    {"residual_scale", "residual_multiplier"},
    {"logit_scale", "logits_scaling"},
};

bool IsKnown(absl::string_view key, const Architecture& architecture) {
  if (std::find(std::begin(kKnownKeys), std::end(kKnownKeys), key) !=
      std::end(kKnownKeys)) {
    return true;
  }
  for (const char* of_experts :
       {gguf_keys::kExpertSize, gguf_keys::kRenormalize,
        gguf_keys::kExpertScoring}) {
    if (key == of_experts) return architecture.has_experts;
  }
  for (const char* of_sigmoids :
       {gguf_keys::kExpertGroups, gguf_keys::kGroupsPerToken,
        gguf_keys::kExpertScale, gguf_keys::kDenseLayers,
        gguf_keys::kGuessingLayers}) {
    if (key == of_sigmoids) return architecture.sigmoid_router;
  }
  using SharedExpert = Architecture::SharedExpert;
  if (key == gguf_keys::kSharedExpertSize) {
    return architecture.shared_expert == SharedExpert::kGated;
  }
  if (key == gguf_keys::kSharedExperts) {
    return architecture.shared_expert == SharedExpert::kCounted;
  }
  if (key == gguf_keys::kLocalTheta) return architecture.local_rope;
  if (key == gguf_keys::kWindowPattern)
    return architecture.full_attention_interval > 0;
  return std::any_of(std::begin(kOptionKeys), std::end(kOptionKeys),
                     [&](const OptionKey& option) {
                       return key == option.key &&
                              architecture.Takes(option.option);
                     });
}

}  // namespace

absl::Status RefuseUnknownGgufKeys(const GgufReader& reader,
                                   const Architecture& architecture) {
  for (const auto& [key, value] : reader.file().metadata()) {
    absl::string_view name = key;
    if (absl::ConsumePrefix(&name, reader.Key("")) &&
        !IsKnown(name, architecture)) {
      return reader.Unsupported(name, "only models without it are");
    }
  }
  return absl::OkStatus();
}

}  // namespace lockstep
