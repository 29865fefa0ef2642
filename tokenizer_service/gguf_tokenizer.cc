#include "tokenizer_service/gguf_tokenizer.h"

#include <absl/algorithm/container.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>
#include <utility>
#include <variant>
#include <vector>

#include "common/status_macros.h"
#include "tokenizer_service/gguf/gguf_splitting.h"
#include "tokenizer_service/gguf/sentencepiece_json.h"
#include "tokenizer_service/hf_tokenizer.h"
#include "tokenizer_service/text_check.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

// tokenizer.ggml.token_type, ggml's docs/gguf.md.
enum TokenType : int64_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// The keys of the model's special tokens, and their names in templates.
constexpr std::pair<const char*, const char*> kSpecialTokens[] = {
    {"tokenizer.ggml.bos_token_id", "bos_token"},
    {"tokenizer.ggml.eos_token_id", "eos_token"},
    {"tokenizer.ggml.unknown_token_id", "unk_token"},
    {"tokenizer.ggml.padding_token_id", "pad_token"},
};

// Ids that end an answer beside eos_token_id: of a turn, of a message.
constexpr const char* kMoreEosKeys[] = {"tokenizer.ggml.eot_token_id",
                                        "tokenizer.ggml.eom_token_id"};

bool FindBool(const GgufFile& file, absl::string_view key, bool otherwise) {
  const GgufFile::Value* value = file.Find(key);
  if (value == nullptr) return otherwise;
  const bool* found = std::get_if<bool>(value);
  return found == nullptr ? otherwise : *found;
}

absl::StatusOr<std::vector<int64_t>> TokenTypes(const GgufFile& file,
                                                size_t num_tokens) {
  constexpr absl::string_view kKey = "tokenizer.ggml.token_type";
  if (file.Find(kKey) == nullptr) {
    return std::vector<int64_t>(num_tokens, kNormal);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto* types, file.GetInts(kKey));
  if (types->size() != num_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        kKey, " has ", types->size(), " entries for ", num_tokens, " tokens."));
  }
  return *types;
}

// The id behind `key`, or none. `num_tokens` limits it.
absl::StatusOr<std::optional<uint32_t>> FindId(const GgufFile& file,
                                               absl::string_view key,
                                               size_t num_tokens) {
  if (file.Find(key) == nullptr) return std::nullopt;
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t id, file.GetUint(key));
  if (id >= num_tokens) {
    return absl::InvalidArgumentError(absl::StrCat(
        key, " is ", id, ", outside the ", num_tokens, " tokens."));
  }
  return id;
}

Json AddedToken(uint32_t id, absl::string_view content, bool special) {
  return {{"id", id},
          {"content", std::string(content)},
          {"special", special},
          {"normalized", false},
          {"lstrip", false},
          {"rstrip", false},
          {"single_word", false}};
}

// "vocab" and "added_tokens" of a tokenizer.json.
struct Tokens {
  Json vocab = Json::object();
  Json added = Json::array();
};

absl::StatusOr<Tokens> ReadTokens(const GgufFile::Strings& tokens,
                                  const std::vector<int64_t>& types) {
  Tokens result;
  for (size_t id = 0; id < tokens.size(); ++id) {
    // One that is not used can be a special token by its id.
    LOCKSTEP_RETURN_IF_ERROR(
        CheckText(absl::StrCat("tokenizer.ggml.tokens[", id, "]"), tokens[id]));
    if (types[id] == kUnused) continue;  // fills up to the number of logits
    const auto [entry, is_new] =
        result.vocab.emplace(std::string(tokens[id]), id);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokenizer.ggml.tokens has \"", tokens[id],
                       "\" twice, at ", entry->dump(), " and ", id, "."));
    }
    const bool special = types[id] == kControl || types[id] == kUnknown;
    if (special || types[id] == kUserDefined) {
      result.added.push_back(AddedToken(id, tokens[id], special));
    }
  }
  return result;
}

absl::StatusOr<Json> ReadMerges(const GgufFile& file) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto* merges,
                            file.GetStrings("tokenizer.ggml.merges"));
  Json result = Json::array();
  for (size_t i = 0; i < merges->size(); ++i) {
    const absl::string_view merge = (*merges)[i];
    LOCKSTEP_RETURN_IF_ERROR(
        CheckText(absl::StrCat("tokenizer.ggml.merges[", i, "]"), merge));
    result.push_back(std::string(merge));
  }
  return result;
}

Json SpecialPiece(absl::string_view token) {
  return {{"SpecialToken", {{"id", std::string(token)}, {"type_id", 0}}}};
}

// What surrounds every text: BOS, EOS, both or nothing.
absl::StatusOr<Json> PostProcessor(const GgufFile& file,
                                   const GgufFile::Strings& tokens,
                                   bool add_bos_token) {
  Json pieces = Json::array();
  Json used = Json::object();
  const auto add = [&](const char* key) -> absl::Status {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto id, FindId(file, key, tokens.size()));
    if (!id.has_value()) {
      return absl::InvalidArgumentError(
          absl::StrCat(key, " is missing, and texts are to have it."));
    }
    const std::string token(tokens[*id]);
    pieces.push_back(SpecialPiece(token));
    used[token] = {{"id", token}, {"ids", {*id}}, {"tokens", {token}}};
    return absl::OkStatus();
  };
  if (FindBool(file, "tokenizer.ggml.add_bos_token", add_bos_token)) {
    LOCKSTEP_RETURN_IF_ERROR(add("tokenizer.ggml.bos_token_id"));
  }
  pieces.push_back({{"Sequence", {{"id", "A"}, {"type_id", 0}}}});
  if (FindBool(file, "tokenizer.ggml.add_eos_token", false)) {
    LOCKSTEP_RETURN_IF_ERROR(add("tokenizer.ggml.eos_token_id"));
  }
  return Json{{"type", "TemplateProcessing"},
              {"single", pieces},
              {"pair", Json::array()},
              {"special_tokens", used}};
}

// What the kinds of tokenizers differ by in a tokenizer.json.
struct Parts {
  Json normalizer;
  Json pre_tokenizer;
  Json decoder;
  Json model;  // but for its vocabulary
  bool add_bos_token;
};

// Of texts that are pieces, as SentencePiece's.
absl::StatusOr<Parts> PieceParts(const GgufFile& file,
                                 const GgufFile::Strings& tokens,
                                 const std::vector<int64_t>& types, Json merges,
                                 bool is_sentencepiece) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto unknown,
      FindId(file, "tokenizer.ggml.unknown_token_id", tokens.size()));
  Json model = {{"type", "BPE"},
                {"fuse_unk", true},
                {"byte_fallback", absl::c_linear_search(types, kByte)},
                {"merges", std::move(merges)}};
  if (unknown.has_value()) model["unk_token"] = std::string(tokens[*unknown]);
  const bool space_prefix =
      FindBool(file, "tokenizer.ggml.add_space_prefix", is_sentencepiece);
  return Parts{.normalizer = SentencePieceNormalizer(space_prefix),
               .pre_tokenizer = nullptr,
               .decoder = SentencePieceDecoder(space_prefix),
               .model = std::move(model),
               .add_bos_token = is_sentencepiece};
}

absl::StatusOr<Parts> MergedParts(const GgufFile& file,
                                  const GgufFile::Strings& tokens,
                                  const std::vector<int64_t>& types,
                                  absl::string_view pre) {
  LOCKSTEP_ASSIGN_OR_RETURN(GgufSplitting splitting, FindGgufSplitting(pre));
  LOCKSTEP_ASSIGN_OR_RETURN(Json merges, ReadMerges(file));
  if (splitting.of_pieces) {
    return PieceParts(file, tokens, types, std::move(merges),
                      /*is_sentencepiece=*/false);
  }
  return Parts{.normalizer = std::move(splitting.normalizer),
               .pre_tokenizer = std::move(splitting.pre_tokenizer),
               .decoder = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", true}},
               .model = {{"type", "BPE"},
                         {"ignore_merges", splitting.ignore_merges},
                         {"merges", std::move(merges)}},
               .add_bos_token = splitting.add_bos_token};
}

// The pieces that texts are put together of, with their scores.
absl::StatusOr<std::vector<ScoredPiece>> ReadPieces(
    const GgufFile& file, const GgufFile::Strings& tokens,
    const std::vector<int64_t>& types) {
  constexpr absl::string_view kKey = "tokenizer.ggml.scores";
  constexpr size_t kMostBytes = 512;
  const GgufFile::Value* value = file.Find(kKey);
  const auto* scores =
      value == nullptr ? nullptr : std::get_if<std::vector<double>>(value);
  if (scores == nullptr || scores->size() != tokens.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat(kKey, " must have a number for each of the ",
                     tokens.size(), " tokens."));
  }
  std::vector<ScoredPiece> pieces;
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (types[id] != kNormal) continue;
    if (tokens[id].size() > kMostBytes) {
      return absl::InvalidArgumentError(
          absl::StrCat("tokenizer.ggml.tokens[", id, "] is ", tokens[id].size(),
                       " bytes long, a piece is at most ", kMostBytes, "."));
    }
    pieces.push_back({tokens[id], (*scores)[id]});
  }
  return pieces;
}

// By tokenizer.ggml.model; Gemma 4's is a name of tokenizer.ggml.pre, too.
absl::StatusOr<Parts> PartsOf(const GgufFile& file,
                              const GgufFile::Strings& tokens,
                              const std::vector<int64_t>& types,
                              absl::string_view model) {
  if (model == "llama") {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto pieces,
                              ReadPieces(file, tokens, types));
    return PieceParts(file, tokens, types, SentencePieceMerges(pieces),
                      /*is_sentencepiece=*/true);
  }
  if (model == "gemma4") return MergedParts(file, tokens, types, model);
  LOCKSTEP_ASSIGN_OR_RETURN(const absl::string_view pre,
                            file.GetString("tokenizer.ggml.pre"));
  return MergedParts(file, tokens, types, pre);
}

absl::StatusOr<std::string> TokenizerJson(const GgufFile& file,
                                          const GgufFile::Strings& tokens,
                                          absl::string_view model) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto types, TokenTypes(file, tokens.size()));
  LOCKSTEP_ASSIGN_OR_RETURN(Tokens read, ReadTokens(tokens, types));
  LOCKSTEP_ASSIGN_OR_RETURN(Parts parts, PartsOf(file, tokens, types, model));
  LOCKSTEP_ASSIGN_OR_RETURN(Json post_processor,
                            PostProcessor(file, tokens, parts.add_bos_token));
  parts.model["vocab"] = std::move(read.vocab);
  const Json json = {{"version", "1.0"},
                     {"added_tokens", std::move(read.added)},
                     {"normalizer", std::move(parts.normalizer)},
                     {"pre_tokenizer", std::move(parts.pre_tokenizer)},
                     {"post_processor", std::move(post_processor)},
                     {"decoder", std::move(parts.decoder)},
                     {"model", std::move(parts.model)}};
  return json.dump();
}

absl::StatusOr<HfTokenizer::Settings> ReadSettings(
    const GgufFile& file, const GgufFile::Strings& tokens) {
  HfTokenizer::Settings settings;
  for (const auto& [key, name] : kSpecialTokens) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto id, FindId(file, key, tokens.size()));
    if (id.has_value()) {
      settings.special_tokens[name] = std::string(tokens[*id]);
    }
  }
  for (const char* key : kMoreEosKeys) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto id, FindId(file, key, tokens.size()));
    if (id.has_value()) settings.more_eos_token_ids.push_back(*id);
  }
  constexpr absl::string_view kTemplateKey = "tokenizer.chat_template";
  if (file.Find(kTemplateKey) != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto source, file.GetString(kTemplateKey));
    settings.chat_template = std::string(source);
  }
  settings.least_vocabulary_size = tokens.size();
  return settings;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> Create(
    const GgufFile& file, const std::optional<std::string>& chat_template) {
  LOCKSTEP_ASSIGN_OR_RETURN(const absl::string_view model,
                            file.GetString("tokenizer.ggml.model"));
  if (model != "gpt2" && model != "llama" && model != "gemma4") {
    return absl::InvalidArgumentError(absl::StrCat(
        "tokenizer.ggml.model is \"", model,
        "\", which is not supported; supported are gpt2, llama and gemma4."));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto* tokens,
                            file.GetStrings("tokenizer.ggml.tokens"));
  LOCKSTEP_ASSIGN_OR_RETURN(const auto json,
                            TokenizerJson(file, *tokens, model));
  LOCKSTEP_ASSIGN_OR_RETURN(auto settings, ReadSettings(file, *tokens));
  if (chat_template.has_value()) settings.chat_template = chat_template;
  return HfTokenizer::Create(json, settings);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Tokenizer>> TokenizerFromGguf(
    const GgufFile& file, const std::optional<std::string>& chat_template) {
  auto tokenizer = Create(file, chat_template);
  if (tokenizer.ok() ||
      absl::StrContains(tokenizer.status().message(), file.path())) {
    return tokenizer;
  }
  return absl::Status(
      tokenizer.status().code(),
      absl::StrCat(file.path(), ": ", tokenizer.status().message()));
}

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenGgufTokenizer(
    const std::string& path, const std::optional<std::string>& chat_template) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, GgufFile::Open(path));
  return TokenizerFromGguf(*file, chat_template);
}

}  // namespace lockstep
