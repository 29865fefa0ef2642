#include "tokenizer_service/caching/text_cuts.h"

#include <absl/algorithm/container.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "common/utf8.h"

namespace lockstep {
namespace {

using Ids = std::vector<uint32_t>;

// What stands before and behind a token when the tokenizer is asked.
constexpr absl::string_view kHeads[] = {"", "x", "x ", "1\n"};
constexpr absl::string_view kTails[] = {
    "x",  "x y",  " x", "  x",      "\nx",          "\n\n x", "\t",
    "1 ", ". He", "'s", "\xc3\xa9", "\xe4\xbd\xa0", "<",      " "};

std::vector<std::string> TokensOfTemplate(const Tokenizer& tokenizer) {
  std::vector<std::string> tokens;
  const auto& chat_template = tokenizer.info().chat_template;
  if (!chat_template.has_value()) return tokens;
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    const Vocabulary::Token token = vocabulary.token(id);
    if (token.special && !token.bytes.empty() &&
        absl::StrContains(*chat_template, token.bytes)) {
      tokens.emplace_back(token.bytes);
    }
  }
  return tokens;
}

bool IsPartOfAnother(absl::string_view token, const Vocabulary& vocabulary) {
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    const absl::string_view other = vocabulary.token(id).bytes;
    if (other.size() > token.size() && absl::StrContains(other, token)) {
      return true;
    }
  }
  return false;
}

bool IsCutAt(const Tokenizer& tokenizer, const std::string& head,
             absl::string_view tail) {
  const auto whole = tokenizer.Encode(absl::StrCat(head, tail), false);
  const auto first = tokenizer.Encode(head, false);
  const auto second = tokenizer.Encode(tail, false);
  if (!whole.ok() || !first.ok() || !second.ok()) return false;
  Ids parts = *first;
  parts.insert(parts.end(), second->begin(), second->end());
  return *whole == parts;
}

// Whether another token, of those that end as `token` begins, takes that
// beginning away from it.
bool IsTakenByAnother(absl::string_view token, const Tokenizer& tokenizer) {
  const Vocabulary& vocabulary = tokenizer.vocabulary();
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    const absl::string_view other = vocabulary.token(id).bytes;
    const size_t most = std::min(other.size(), token.size());
    for (size_t shared = 1; shared < most; ++shared) {
      if (!absl::EndsWith(other, token.substr(0, shared))) continue;
      const std::string both = absl::StrCat(other, token.substr(shared));
      if (FindInvalidUtf8(both) == std::nullopt &&
          !IsCutAt(tokenizer, both, "x")) {
        return true;
      }
    }
  }
  return false;
}

bool MayBeCutBehind(const std::string& token,
                    const std::vector<std::string>& tokens,
                    const Tokenizer& tokenizer) {
  std::vector<std::string> tails(std::begin(kTails), std::end(kTails));
  for (const std::string& other : tokens) {
    tails.push_back(other);
    tails.push_back(absl::StrCat(" ", other));
  }
  return absl::c_all_of(kHeads, [&](absl::string_view head) {
    const std::string begin = absl::StrCat(head, token);
    return absl::c_all_of(tails, [&](const std::string& tail) {
      return IsCutAt(tokenizer, begin, tail);
    });
  });
}

}  // namespace

TextCuts::TextCuts(const Tokenizer& tokenizer) {
  const std::vector<std::string> written = TokensOfTemplate(tokenizer);
  for (const std::string& token : written) {
    if (IsPartOfAnother(token, tokenizer.vocabulary()) ||
        !MayBeCutBehind(token, written, tokenizer) ||
        IsTakenByAnother(token, tokenizer)) {
      continue;
    }
    begins_token_[static_cast<uint8_t>(token[0])] = true;
    tokens_.push_back(token);
  }
}

std::vector<absl::string_view> TextCuts::Split(absl::string_view text) const {
  std::vector<absl::string_view> parts;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(NextCut(text, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return parts;
}

size_t TextCuts::NextCut(absl::string_view text, size_t from) const {
  for (size_t at = from; at < text.size(); ++at) {
    if (!begins_token_[static_cast<uint8_t>(text[at])]) continue;
    for (const std::string& token : tokens_) {
      if (absl::StartsWith(text.substr(at), token)) return at + token.size();
    }
  }
  return text.npos;
}

}  // namespace lockstep
