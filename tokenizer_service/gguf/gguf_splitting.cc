#include "tokenizer_service/gguf/gguf_splitting.h"

#include <absl/strings/str_cat.h>

#include <string>

#include "tokenizer_service/gguf/splitting_rules.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

// A rule by one of its names.
struct Row {
  absl::string_view name;
  Json (*rule)();
  bool is_nfc;  // the text first
  bool ignore_merges;
  bool add_bos_token;
};

constexpr Row kRows[] = {
    {"default", splitting::Default, false, false, false},
    {"gpt-2", splitting::Gpt2, false, false, false},
    {"phi-2", splitting::Gpt2, false, false, false},
    {"gigachat", splitting::Gpt2, false, false, false},
    {"a.x-4.0", splitting::Gpt2, false, false, false},
    {"mellum", splitting::Gpt2, false, false, false},
    {"trillion", splitting::Gpt2, false, false, false},
    {"granite-docling", splitting::Gpt2, false, false, false},
    {"exaone4", splitting::Gpt2, false, false, false},
    {"jais", splitting::Gpt2, false, false, false},
    {"jina-es", splitting::Gpt2, false, false, false},
    {"jina-de", splitting::Gpt2, false, false, false},
    {"jina-v2-es", splitting::Gpt2, false, false, false},
    {"jina-v2-de", splitting::Gpt2, false, false, false},
    {"mpt", splitting::Gpt2, true, false, false},
    {"olmo", splitting::Gpt2, true, false, false},
    {"modern-bert", splitting::Gpt2, true, false, false},
    {"smollm", splitting::Smollm, false, false, false},
    {"starcoder", splitting::Smollm, false, false, false},
    {"refact", splitting::Smollm, false, false, false},
    {"codeshell", splitting::Smollm, false, false, false},
    {"exaone", splitting::Smollm, false, false, false},
    {"minerva-7b", splitting::Smollm, false, false, false},
    {"mellum2", splitting::Smollm, false, false, false},
    {"command-r", splitting::Smollm, true, false, false},
    {"llama-bpe", splitting::Llama3, false, true, true},
    {"llama3", splitting::Llama3, false, true, true},
    {"llama-v3", splitting::Llama3, false, true, true},
    {"falcon3", splitting::Llama3, false, true, true},
    {"pixtral", splitting::Llama3, false, true, true},
    {"midm-2.0", splitting::Llama3, false, true, true},
    {"falcon-h1", splitting::Llama3, false, true, true},
    {"jina-v5-nano", splitting::Llama3, false, true, true},
    {"lfm2", splitting::Llama3, false, false, true},
    {"dbrx", splitting::Llama3, false, false, false},
    {"smaug-bpe", splitting::Llama3, false, false, false},
    {"chatglm-bpe", splitting::Llama3, false, false, false},
    {"glm4", splitting::Llama3, false, false, false},
    {"jais-2", splitting::Jais2, false, false, false},
    {"minicpm5", splitting::MiniCpm5, false, true, false},
    {"superbpe", splitting::SuperBpe, false, false, false},
    {"qwen2", splitting::Qwen2, true, false, false},
    {"deepseek-r1-qwen", splitting::Qwen2, true, false, false},
    {"f2llmv2", splitting::Qwen2, true, false, false},
    {"stablelm2", splitting::Qwen2, true, false, false},
    {"kormo", splitting::Qwen2, false, false, false},
    {"megrez", splitting::Qwen2, false, false, false},
    {"hunyuan", splitting::Qwen2, false, false, false},
    {"solar-open", splitting::Qwen2, false, false, false},
    {"grok-2", splitting::Qwen2, false, false, false},
    {"ufakzeka", splitting::UfakZeka, false, false, false},
    {"laguna", splitting::Laguna, false, false, false},
    {"exaone-moe", splitting::ExaoneMoe, false, false, false},
    {"qwen35", splitting::Qwen35, true, false, false},
    {"bailingmoe", splitting::Bailing, false, false, false},
    {"bailingmoe2", splitting::Bailing, false, false, false},
    {"llada-moe", splitting::Bailing, false, false, false},
    {"seed-coder", splitting::SeedCoder, false, false, false},
    {"gpt-4o", splitting::Gpt4o, false, true, false},
    {"llama4", splitting::Gpt4o, false, true, false},
    {"kanana2", splitting::Gpt4o, false, false, false},
    {"minimax-m2", splitting::Gpt4o, false, false, false},
    {"talkie", splitting::Gpt4o, false, false, false},
    {"granite-embed-multi-97m", splitting::Gpt4o, false, true, false},
    {"tiny_aya", splitting::TinyAya, false, false, false},
    {"cohere2moe", splitting::TinyAya, false, false, false},
    {"kimi-k2", splitting::KimiK2, false, true, false},
    {"youtu", splitting::Youtu, false, true, false},
    {"tekken", splitting::Tekken, false, true, true},
    {"deepseek-llm", splitting::DeepSeekLlm, false, false, false},
    {"deepseek-coder", splitting::DeepSeekCoder, false, false, false},
    {"deepseek-v3", splitting::DeepSeekV3, false, false, false},
    {"hunyuan-dense", splitting::DeepSeekV3, false, false, false},
    {"joyai-llm", splitting::DeepSeekV3, false, false, false},
    {"hy_v4", splitting::DeepSeekV3, false, false, false},
    {"spark2_5", splitting::Spark, false, false, false},
    {"afmoe", splitting::Afmoe, false, false, false},
    {"falcon", splitting::Falcon, false, false, false},
    {"bloom", splitting::Bloom, false, false, false},
    {"poro-chat", splitting::Bloom, false, false, false},
    {"gpt3-finnish", splitting::Bloom, false, false, false},
    {"viking", splitting::Viking, false, false, false},
    {"chameleon", splitting::Chameleon, false, false, true},
};

// Gemma 4's: a text is not cut, and in place of its bytes pieces are merged.
constexpr absl::string_view kPieceNames[] = {
    "gemma4", "granite-embed-multi-311m", "sarvam-moe"};

}  // namespace

absl::StatusOr<GgufSplitting> FindGgufSplitting(absl::string_view name) {
  std::string names;
  for (const Row& row : kRows) {
    if (row.name == name) {
      return GgufSplitting{
          .normalizer = row.is_nfc ? Json{{"type", "NFC"}} : Json(),
          .pre_tokenizer = row.rule(),
          .ignore_merges = row.ignore_merges,
          .add_bos_token = row.add_bos_token};
    }
    absl::StrAppend(&names, names.empty() ? "" : ", ", row.name);
  }
  for (const absl::string_view of_pieces : kPieceNames) {
    if (of_pieces == name) {
      GgufSplitting splitting;
      splitting.of_pieces = true;
      return splitting;
    }
    absl::StrAppend(&names, ", ", of_pieces);
  }
  return absl::InvalidArgumentError(
      absl::StrCat("tokenizer.ggml.pre is \"", name,
                   "\", which is not supported; supported are ", names, "."));
}

}  // namespace lockstep
