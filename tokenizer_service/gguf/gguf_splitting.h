#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

namespace lockstep {

// How a model's tokenizer cuts a text before it merges bytes, by the name that
// GGUF files have for it (tokenizer.ggml.pre).
struct GgufSplitting {
  absl::string_view name;
  // JSON, as in a tokenizer.json.
  absl::string_view normalizer;
  absl::string_view pre_tokenizer;
  // A piece that is in the vocabulary is one token, whatever the merges say.
  bool ignore_merges;
  // Where the file does not say.
  bool add_bos_token;
};

// INVALID_ARGUMENT lists the names there are.
absl::StatusOr<const GgufSplitting*> FindGgufSplitting(absl::string_view name);

}  // namespace lockstep
