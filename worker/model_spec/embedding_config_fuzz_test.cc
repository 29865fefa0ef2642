#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>

#include "common/strict_json.h"
#include "worker/model_spec/embedding_config.h"

// Whatever the text: an error, or something that can be asked for.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr int kHiddenSize = 64;
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto json = lockstep::ParseStrictJson(text, "fuzz.json");
  if (!json.ok()) return 0;
  lockstep::EmbeddingConfig embedding;
  const auto folder = lockstep::ReadModules(*json, "modules.json", &embedding);
  if (folder.ok() && folder->has_value()) {
    const bool leads_out = (*folder)->find('/') != std::string::npos ||
                           **folder == ".." || (*folder)->empty();
    if (leads_out) __builtin_trap();
  }
  (void)lockstep::ReadPooling(*json, "pooling.json", &embedding);
  const auto status =
      lockstep::ReadMatryoshka(*json, "config.json", kHiddenSize, &embedding);
  if (!status.ok()) return 0;
  for (const int dimensions : embedding.fewer_dimensions) {
    if (dimensions < 1 || dimensions > kHiddenSize) __builtin_trap();
  }
  return 0;
}
