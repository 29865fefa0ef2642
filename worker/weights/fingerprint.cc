#include "worker/weights/fingerprint.h"

#include <algorithm>
#include <bit>
#include <initializer_list>

#include "common/digest.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kSampleBytes = 4096;
constexpr size_t kSamples = 6;  // the first and the last byte are among them

void AddBytes(absl::Span<const uint8_t> bytes, DigestBuilder& builder) {
  builder.Add(absl::string_view(reinterpret_cast<const char*>(bytes.data()),
                                bytes.size()));
}

void AddSamples(absl::Span<const uint8_t> bytes, DigestBuilder& builder) {
  if (bytes.size() <= kSamples * kSampleBytes) return AddBytes(bytes, builder);
  const size_t last = bytes.size() - kSampleBytes;
  for (size_t i = 0; i < kSamples; ++i) {
    AddBytes(bytes.subspan(last * i / (kSamples - 1), kSampleBytes), builder);
  }
}

Digest DigestOf(const Tensor& tensor) {
  DigestBuilder builder;
  builder.Add(tensor.name);
  builder.Add(kernels::DTypeName(tensor.type));
  builder.Add(uint64_t{tensor.shape.size()});
  for (const int64_t size : tensor.shape) {
    builder.Add(static_cast<uint64_t>(size));
  }
  builder.Add(uint64_t{tensor.bytes.size()});
  AddSamples(tensor.bytes, builder);
  return builder.Finish();
}

void AddInts(std::initializer_list<int> values, DigestBuilder& builder) {
  for (const int value : values) builder.Add(static_cast<uint64_t>(value));
}

void AddFloats(std::initializer_list<float> values, DigestBuilder& builder) {
  for (const float value : values) {
    builder.Add(uint64_t{std::bit_cast<uint32_t>(value)});
  }
}

void AddRope(const RopeConfig& rope, DigestBuilder& builder) {
  AddInts({rope.rotary_dim, rope.original_max_position, rope.longest_sequence,
           static_cast<int>(rope.style), static_cast<int>(rope.scaling)},
          builder);
  AddFloats(
      {rope.theta, rope.factor, rope.low_freq_factor, rope.high_freq_factor,
       rope.beta_fast, rope.beta_slow, rope.attention_factor},
      builder);
  for (const float factor : rope.factors) AddFloats({factor}, builder);
}

void AddConfig(const ModelConfig& config, DigestBuilder& builder) {
  const ExpertsConfig& experts = config.experts;
  builder.Add(config.architecture);
  AddInts({config.vocab_size,
           config.hidden_size,
           config.intermediate_size,
           config.num_layers,
           config.num_heads,
           config.num_kv_heads,
           config.head_dim,
           config.max_context,
           config.norm_offset,
           config.qk_norm,
           config.projection_norm,
           config.qkv_bias,
           config.fused_qkv,
           config.fused_gate_up,
           config.tied_embeddings,
           static_cast<int>(config.gate),
           experts.num_experts,
           experts.experts_per_token,
           experts.intermediate_size,
           experts.renormalize,
           experts.shared_intermediate_size},
          builder);
  if (experts.sigmoid) {
    AddInts({experts.choice_bias, experts.num_groups, experts.groups_per_token},
            builder);
    AddFloats({experts.weight_scale}, builder);
  }
  for (const LayerConfig& layer : config.layers) {
    AddInts({layer.window, layer.has_rope, layer.local_rope, layer.has_experts},
            builder);
  }
  AddFloats({config.norm_eps, config.embedding_scale, config.query_scale,
             config.score_cap, config.residual_scale, config.logit_divisor,
             config.logit_cap},
            builder);
  AddRope(config.rope, builder);
  AddRope(config.local_rope, builder);
  builder.Add(absl::MakeConstSpan(config.eos_token_ids));
}

}  // namespace

absl::StatusOr<std::string> Fingerprint(const ModelConfig& config,
                                        absl::string_view format,
                                        const TensorSource& stored) {
  DigestBuilder builder;
  AddConfig(config, builder);
  builder.Add(format);
  for (const std::string& name : stored.Names()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Tensor tensor, stored.Get(name));
    builder.Add(DigestOf(tensor));
  }
  return ToHex(builder.Finish());
}

}  // namespace lockstep
