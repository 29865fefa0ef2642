#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <nlohmann/json.hpp>

namespace lockstep {

// How a model's tokenizer cuts a text before it merges bytes, by the name that
// GGUF files have for it (tokenizer.ggml.pre).
struct GgufSplitting {
  // As in the model's tokenizer.json.
  nlohmann::json normalizer;
  nlohmann::json pre_tokenizer;
  // A piece that is in the vocabulary is one token, whatever the merges say.
  bool ignore_merges = false;
  // Where the file does not say.
  bool add_bos_token = false;
  // It has no pre_tokenizer: texts are pieces as SentencePiece's are
  // (sentencepiece_json.h), which the file has merges of.
  bool of_pieces = false;
};

// INVALID_ARGUMENT lists the names there are.
absl::StatusOr<GgufSplitting> FindGgufSplitting(absl::string_view name);

}  // namespace lockstep
