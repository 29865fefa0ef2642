#include "tokenizer_service/gguf/gguf_splitting.h"

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

// GPT-4o and Phi-4-mini: words by the case of their letters.
constexpr absl::string_view kGpt4o =
    R"json({"type": "Sequence", "pretokenizers": [
         {"type": "Split", "behavior": "Isolated", "invert": false,
          "pattern": {"Regex": "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
         {"type": "ByteLevel", "add_prefix_space": false,
          "trim_offsets": true, "use_regex": false}]})json";

// Mistral's since Nemo: the same without endings, and with single digits.
constexpr absl::string_view kTekken =
    R"json({"type": "Sequence", "pretokenizers": [
         {"type": "Split", "behavior": "Isolated", "invert": false,
          "pattern": {"Regex": "[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]*[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]+|[^\\r\\n\\p{L}\\p{N}]?[\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}]+[\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}]*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+"}},
         {"type": "ByteLevel", "add_prefix_space": false,
          "trim_offsets": true, "use_regex": false}]})json";

constexpr absl::string_view kNoNormalizer = "null";
constexpr absl::string_view kNfc = R"({"type": "NFC"})";

// Each rule by all of its names.
constexpr GgufSplitting kSplittings[] = {
    {"gpt-2", kNoNormalizer, kGpt2, false, false},
    {"smollm", kNoNormalizer, kSmollm, false, false},
    {"starcoder", kNoNormalizer, kSmollm, false, false},
    {"refact", kNoNormalizer, kSmollm, false, false},
    {"llama-bpe", kNoNormalizer, kLlama3, true, true},
    {"llama3", kNoNormalizer, kLlama3, true, true},
    {"llama-v3", kNoNormalizer, kLlama3, true, true},
    {"falcon3", kNoNormalizer, kLlama3, true, true},
    {"dbrx", kNoNormalizer, kLlama3, false, false},
    {"smaug-bpe", kNoNormalizer, kLlama3, false, false},
    {"chatglm-bpe", kNoNormalizer, kLlama3, false, false},
    {"glm4", kNoNormalizer, kLlama3, false, false},
    {"qwen2", kNfc, kQwen2, false, false},
    {"deepseek-r1-qwen", kNfc, kQwen2, false, false},
    {"gpt-4o", kNoNormalizer, kGpt4o, true, false},
    {"tekken", kNoNormalizer, kTekken, true, true},
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
