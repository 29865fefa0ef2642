#include "tests/testing/tokenizer_gguf.h"

#include <absl/strings/match.h>
#include <absl/strings/str_replace.h>
#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

namespace lockstep::testing {
namespace {

using nlohmann::json;

// tokenizer.ggml.token_type, ggml's docs/gguf.md.
enum TokenType : int32_t {
  kNormal = 1,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

uint32_t LastId(const json& vocab, const json& added) {
  uint32_t last = 0;
  for (const json& id : vocab) last = std::max(last, id.get<uint32_t>());
  for (const json& token : added) {
    last = std::max(last, token["id"].get<uint32_t>());
  }
  return last;
}

// Ids that the file leaves out get placeholders.
void AddTokens(const json& vocab, const json& added, bool has_scores,
               GgufWriter* writer) {
  const uint32_t last = LastId(vocab, added);
  std::vector<std::string> tokens;
  for (uint32_t id = 0; id <= last; ++id) {
    tokens.push_back("[PAD" + std::to_string(id) + "]");
  }
  std::vector<int32_t> types(tokens.size(), kUnused);
  for (const auto& [token, id] : vocab.items()) {
    tokens[id] = token;
    types[id] = absl::StartsWith(token, "<0x") ? kByte : kNormal;
  }
  for (const json& token : added) {
    const uint32_t id = token["id"];
    tokens[id] = token["content"];
    if (has_scores && !token["special"]) {  // looked for in the text as it is
      tokens[id] = absl::StrReplaceAll(tokens[id], {{"\u2581", " "}});
    }
    types[id] = token["special"] ? kControl : kUserDefined;
  }
  writer->AddStrings("tokenizer.ggml.tokens", tokens);
  writer->AddInts("tokenizer.ggml.token_type", types);
}

void AddMerges(const json& merges, GgufWriter* writer) {
  std::vector<std::string> lines;
  for (const json& merge : merges) {
    // Newer files have pairs.
    lines.push_back(merge.is_string() ? merge.get<std::string>()
                                      : merge[0].get<std::string>() + " " +
                                            merge[1].get<std::string>());
  }
  writer->AddStrings("tokenizer.ggml.merges", lines);
}

// The earlier two tokens become it, the better is its score.
void AddScores(const json& vocab, const json& added, const json& merges,
               GgufWriter* writer) {
  std::vector<float> scores(LastId(vocab, added) + 1, -1e6f);
  for (size_t i = merges.size(); i-- > 0;) {
    const auto merge = merges[i].get<std::pair<std::string, std::string>>();
    scores[vocab[merge.first + merge.second]] = -static_cast<float>(i);
  }
  writer->AddFloats("tokenizer.ggml.scores", scores);
}

}  // namespace

GgufWriter TokenizerGguf(const std::string& tokenizer_json,
                         const std::string& pre) {
  std::ifstream file(tokenizer_json);
  CHECK(file.good()) << "cannot read " << tokenizer_json;
  // Not ReadJson: keys in order take time that grows with the square of a
  // vocabulary.
  const json tokenizer = json::parse(file);
  const json& model = tokenizer["model"];
  GgufWriter writer;
  writer.AddString("general.architecture", "llama");
  const bool of_pieces = model.value("byte_fallback", false);
  const bool has_scores = of_pieces && pre.empty();
  AddTokens(model["vocab"], tokenizer["added_tokens"], has_scores, &writer);
  if (of_pieces) {
    writer.AddUint("tokenizer.ggml.unknown_token_id",
                   model["vocab"][model["unk_token"].get<std::string>()]);
  }
  if (pre == "gemma4") {
    writer.AddString("tokenizer.ggml.model", pre);
    AddMerges(model["merges"], &writer);
    return writer;
  }
  if (has_scores) {
    writer.AddString("tokenizer.ggml.model", "llama");
    writer.AddBool("tokenizer.ggml.add_space_prefix", false);
    AddScores(model["vocab"], tokenizer["added_tokens"], model["merges"],
              &writer);
    return writer;
  }
  writer.AddString("tokenizer.ggml.model", "gpt2");
  writer.AddString("tokenizer.ggml.pre", pre);
  AddMerges(model["merges"], &writer);
  return writer;
}

}  // namespace lockstep::testing
