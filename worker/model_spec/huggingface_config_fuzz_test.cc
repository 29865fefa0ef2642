#include <cstddef>
#include <cstdint>

#include "common/strict_json.h"
#include "worker/model_spec/huggingface_config.h"
#include "worker/model_spec/sampling_defaults.h"

// Whatever the text: an error, or a config whose numbers can be computed with.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = lockstep::ParseStrictJson(text, "fuzz.json");
  if (!json.ok()) return 0;
  (void)lockstep::SamplingFromGenerationConfig(*json, "fuzz.json");
  auto config = lockstep::ConfigFromHuggingFace(*json, "fuzz.json");
  if (!config.ok()) return 0;
  if (config->num_kv_heads < 1 || config->head_dim < 2) __builtin_trap();
  if (config->num_heads % config->num_kv_heads != 0) __builtin_trap();
  (void)lockstep::MergeGenerationConfig(*json, "fuzz.json", &*config);
  for (const uint32_t id : config->eos_token_ids) {
    if (id >= static_cast<uint32_t>(config->vocab_size)) __builtin_trap();
  }
  return 0;
}
