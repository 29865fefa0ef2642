#include "tokenizer_service/gguf_splitting.h"

#include <absl/strings/str_cat.h>

namespace lockstep {
namespace {

// GPT-2's own rule.
constexpr absl::string_view kGpt2 =
    R"({"type": "ByteLevel", "add_prefix_space": false,
        "trim_offsets": true, "use_regex": true})";

// Every digit apart, then GPT-2's rule: a space before a digit stays alone.
constexpr absl::string_view kSmollm =
    R"({"type": "Sequence", "pretokenizers": [
         {"type": "Digits", "individual_digits": true},
         {"type": "ByteLevel", "add_prefix_space": false,
          "trim_offsets": true, "use_regex": true}]})";

// Llama 3: numbers in groups of three digits.
constexpr absl::string_view kLlama3 =
    R"json({"type": "Sequence", "pretokenizers": [
         {"type": "Split", "behavior": "Isolated", "invert": false,
          "pattern": {"Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
         {"type": "ByteLevel", "add_prefix_space": false,
          "trim_offsets": true, "use_regex": false}]})json";

// Qwen 2 and 3: the same with single digits.
constexpr absl::string_view kQwen2 =
    R"json({"type": "Sequence", "pretokenizers": [
         {"type": "Split", "behavior": "Isolated", "invert": false,
          "pattern": {"Regex": "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
         {"type": "ByteLevel", "add_prefix_space": false,
          "trim_offsets": false, "use_regex": false}]})json";

constexpr GgufSplitting kSplittings[] = {
    {"gpt-2", "null", kGpt2, false, false},
    {"smollm", "null", kSmollm, false, false},
    {"llama-bpe", "null", kLlama3, true, true},
    {"qwen2", R"({"type": "NFC"})", kQwen2, false, false},
};

}  // namespace

absl::StatusOr<const GgufSplitting*> FindGgufSplitting(absl::string_view name) {
  std::string names;
  for (const GgufSplitting& splitting : kSplittings) {
    if (splitting.name == name) return &splitting;
    absl::StrAppend(&names, names.empty() ? "" : ", ", splitting.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("tokenizer.ggml.pre is \"", name,
                   "\", which is not supported; supported are ", names, "."));
}

}  // namespace lockstep
