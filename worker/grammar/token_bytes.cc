#include "worker/grammar/token_bytes.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/types/span.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>

#include "common/gguf_file.h"
#include "common/mapped_file.h"
#include "common/status_macros.h"
#include "third_party/text/text_library.h"
#include "third_party/text/tokens_digest.h"

namespace lockstep {
namespace {

// Bytes that can not be seen are written as characters from U+0100 on, in
// order (GPT-2's bytes_to_unicode); the others as the character of their
// number. All of them are below U+0144.
constexpr int kFirstStandIn = 0x100;

bool IsSeen(int byte) {
  return (byte > ' ' && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
}

std::array<int, 0x144> MakeBytesOfCharacters() {
  std::array<int, 0x144> bytes;
  bytes.fill(-1);
  int next = kFirstStandIn;
  for (int byte = 0; byte < 256; ++byte) {
    bytes[IsSeen(byte) ? byte : next++] = byte;
  }
  return bytes;
}

// The next character of one or two bytes, which all of the alphabet are.
std::optional<int> TakeCharacter(absl::string_view* text) {
  const auto at = [&](size_t i) { return static_cast<uint8_t>((*text)[i]); };
  if (at(0) < 0x80) {
    const int character = at(0);
    text->remove_prefix(1);
    return character;
  }
  if (at(0) < 0xc2 || at(0) >= 0xe0 || text->size() < 2) return std::nullopt;
  const int character = (at(0) & 0x1f) << 6 | (at(1) & 0x3f);
  text->remove_prefix(2);
  return character;
}

using TokenizerPtr = std::unique_ptr<LtTokenizer, decltype(&lt_tokenizer_free)>;

TokenBytes CopyOf(const LtVocabulary& vocabulary) {
  TokenBytes tokens;
  tokens.bytes.assign(reinterpret_cast<const char*>(vocabulary.bytes.data),
                      vocabulary.bytes.size);
  tokens.ends.assign(vocabulary.ends.data,
                     vocabulary.ends.data + vocabulary.ends.size);
  tokens.kinds.assign(vocabulary.kinds.data,
                      vocabulary.kinds.data + vocabulary.kinds.size);
  return tokens;
}

absl::StatusOr<TokenBytes> FromTokenizerJson(absl::Span<const uint8_t> json) {
  RustBytes error;
  LtTokenizer* opened = nullptr;
  LOCKSTEP_RETURN_IF_ERROR(ToStatus(
      lt_tokenizer_new(json.data(), json.size(), &opened, &error), error));
  const TokenizerPtr tokenizer(opened, &lt_tokenizer_free);
  LtVocabulary vocabulary = {};
  LOCKSTEP_RETURN_IF_ERROR(
      ToStatus(lt_vocabulary(tokenizer.get(), &vocabulary, &error), error));
  TokenBytes tokens = CopyOf(vocabulary);
  lt_vocabulary_free(&vocabulary);
  return tokens;
}

// tokenizer.ggml.token_type, ggml's docs/gguf.md: what the model's own files
// call special, of no text; what fills up to the number of logits.
constexpr int64_t kNormal = 1, kUnknown = 2, kControl = 3, kUnused = 5;

// Of a token of SentencePiece's: as the decoder ByteFallback reads it, which
// knows a byte by its text, "<0x0A>".
void AddPiece(absl::string_view piece, bool is_special, TokenBytes* tokens) {
  int byte = 0;
  if (piece.size() == 6 && absl::StartsWith(piece, "<0x") &&
      absl::EndsWith(piece, ">") &&
      absl::SimpleHexAtoi(piece.substr(3, 2), &byte)) {
    tokens->Add(std::string(1, static_cast<char>(byte)), is_special);
    tokens->kinds.back() ^= LT_TOKEN_TEXT | LT_TOKEN_BYTE;
    return;
  }
  tokens->Add(absl::StrReplaceAll(piece, {{"\u2581", " "}}), is_special);
}

absl::StatusOr<TokenBytes> FromGguf(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, GgufFile::Open(path));
  LOCKSTEP_ASSIGN_OR_RETURN(const absl::string_view model,
                            file->GetString("tokenizer.ggml.model"));
  const bool is_sentencepiece = model == "llama";
  if (!is_sentencepiece && model != "gpt2") {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": tokenizer.ggml.model is \"", model,
                     "\"; grammars need \"gpt2\" or \"llama\"."));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const auto* texts,
                            file->GetStrings("tokenizer.ggml.tokens"));
  const std::vector<int64_t>* types = nullptr;
  if (file->Find("tokenizer.ggml.token_type") != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(types,
                              file->GetInts("tokenizer.ggml.token_type"));
  }
  TokenBytes tokens;
  for (size_t id = 0; id < texts->size(); ++id) {
    const absl::string_view text = (*texts)[id];
    const int64_t type =
        types != nullptr && id < types->size() ? (*types)[id] : kNormal;
    const bool is_special = type == kControl || type == kUnknown;
    if (type == kUnused) {
      tokens.Resize(id + 1);
    } else if (is_sentencepiece) {
      AddPiece(text, is_special, &tokens);
    } else {
      tokens.Add(BytesOfToken(text), is_special);
    }
  }
  return tokens;
}

}  // namespace

void TokenBytes::Add(absl::string_view text, bool is_special) {
  bytes.append(text.data(), text.size());
  ends.push_back(static_cast<uint32_t>(bytes.size()));
  kinds.push_back(LT_TOKEN_TEXT | (is_special ? LT_TOKEN_SPECIAL : 0));
}

void TokenBytes::Resize(size_t size) {
  if (size < ends.size()) bytes.resize(size == 0 ? 0 : ends[size - 1]);
  ends.resize(size, static_cast<uint32_t>(bytes.size()));
  kinds.resize(size, LT_TOKEN_NONE);
}

std::string TokenBytes::MakeDigest() const {
  DigestBuilder builder;
  builder.Add(absl::string_view(bytes));
  builder.Add(absl::MakeConstSpan(ends));
  builder.Add(absl::string_view(reinterpret_cast<const char*>(kinds.data()),
                                kinds.size()));
  return ToHex(builder.Finish());
}

Digest TokenBytes::MakeTokensDigest() const {
  TokensDigest digest;
  uint32_t begin = 0;
  for (size_t id = 0; id < ends.size(); ++id) {
    digest.Add(absl::string_view(bytes).substr(begin, ends[id] - begin),
               (kinds[id] & ~LT_TOKEN_SPECIAL) != LT_TOKEN_NONE);
    begin = ends[id];
  }
  return digest.Finish();
}

std::string BytesOfToken(absl::string_view token) {
  static const std::array<int, 0x144> kBytes = MakeBytesOfCharacters();
  std::string bytes;
  for (absl::string_view rest = token; !rest.empty();) {
    const std::optional<int> character = TakeCharacter(&rest);
    if (!character.has_value() || *character >= kBytes.size() ||
        kBytes[*character] < 0) {
      return std::string(token);
    }
    bytes.push_back(static_cast<char>(kBytes[*character]));
  }
  return bytes;
}

absl::StatusOr<TokenBytes> ReadTokenBytes(const std::string& model) {
  if (absl::EndsWith(model, ".gguf")) return FromGguf(model);
  const std::string path = model + "/tokenizer.json";
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  auto tokens = FromTokenizerJson(file->bytes());
  if (tokens.ok()) return tokens;
  return absl::Status(tokens.status().code(),
                      absl::StrCat(path, ": ", tokens.status().message()));
}

}  // namespace lockstep
