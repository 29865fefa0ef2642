#include "tests/testing/tokenizer_gguf.h"

#include <glog/logging.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

namespace lockstep::testing {
namespace {

// tokenizer.ggml.token_type, ggml's docs/gguf.md.
enum TokenType : int32_t {
  kNormal = 1,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
};

}  // namespace

GgufWriter TokenizerGguf(const std::string& tokenizer_json,
                         const std::string& pre) {
  std::ifstream file(tokenizer_json);
  CHECK(file.good()) << "cannot read " << tokenizer_json;
  const auto tokenizer = nlohmann::json::parse(file);
  const auto& vocab = tokenizer["model"]["vocab"];
  const auto& added = tokenizer["added_tokens"];
  uint32_t last = 0;
  for (const auto& id : vocab) last = std::max(last, id.get<uint32_t>());
  for (const auto& token : added) {
    last = std::max(last, token["id"].get<uint32_t>());
  }
  std::vector<std::string> tokens;
  for (uint32_t id = 0; id <= last; ++id) {
    tokens.push_back("[PAD" + std::to_string(id) + "]");
  }
  std::vector<int32_t> types(tokens.size(), kUnused);
  for (const auto& [token, id] : vocab.items()) {
    tokens[id] = token;
    types[id] = kNormal;
  }
  for (const auto& token : added) {
    const uint32_t id = token["id"];
    tokens[id] = token["content"];
    types[id] = token["special"] ? kControl : kUserDefined;
  }
  std::vector<std::string> merges;
  for (const auto& merge : tokenizer["model"]["merges"]) {
    // Newer files have pairs.
    merges.push_back(merge.is_string() ? merge.get<std::string>()
                                       : merge[0].get<std::string>() + " " +
                                             merge[1].get<std::string>());
  }
  GgufWriter writer;
  writer.AddString("general.architecture", "llama");
  writer.AddString("tokenizer.ggml.model", "gpt2");
  writer.AddString("tokenizer.ggml.pre", pre);
  writer.AddStrings("tokenizer.ggml.tokens", tokens);
  writer.AddInts("tokenizer.ggml.token_type", types);
  writer.AddStrings("tokenizer.ggml.merges", merges);
  return writer;
}

}  // namespace lockstep::testing
