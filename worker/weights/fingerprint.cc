#include "worker/weights/fingerprint.h"

#include <algorithm>
#include <bit>

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

void AddConfig(const ModelConfig& config, DigestBuilder& builder) {
  builder.Add(config.architecture);
  for (const int value :
       {config.vocab_size, config.hidden_size, config.intermediate_size,
        config.num_layers, config.num_heads, config.num_kv_heads,
        config.head_dim, config.max_context, config.rope.rotary_dim,
        config.rope.original_max_position, static_cast<int>(config.rope.style),
        static_cast<int>(config.rope.scaling), int{config.qk_norm},
        int{config.qkv_bias}, int{config.fused_projections},
        int{config.tied_embeddings}}) {
    builder.Add(static_cast<uint64_t>(value));
  }
  for (const LayerAttention& layer : config.attention) {
    builder.Add(static_cast<uint64_t>(layer.window));
    builder.Add(uint64_t{layer.has_rope});
  }
  for (const float value :
       {config.norm_eps, config.rope.theta, config.rope.factor,
        config.rope.low_freq_factor, config.rope.high_freq_factor,
        config.rope.beta_fast, config.rope.beta_slow,
        config.rope.attention_factor}) {
    builder.Add(uint64_t{std::bit_cast<uint32_t>(value)});
  }
  builder.Add(absl::MakeConstSpan(config.eos_token_ids));
}

}  // namespace

absl::StatusOr<std::string> Fingerprint(const ModelConfig& config,
                                        const TensorSource& source) {
  DigestBuilder builder;
  AddConfig(config, builder);
  for (const std::string& name : source.Names()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const Tensor tensor, source.Get(name));
    builder.Add(DigestOf(tensor));
  }
  return ToHex(builder.Finish());
}

}  // namespace lockstep
