#include "frontend/openai/logprobs.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace lockstep::openai {
namespace {

constexpr float kLeastLogprob = -9999;

size_t CountCharacters(const std::string& text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (c & 0xc0) != 0x80; });
}

}  // namespace

Json LogprobNumber(float logprob) {
  if (std::isnan(logprob)) return nullptr;
  return std::max(logprob, kLeastLogprob);
}

Json LogprobsWriter::Write(absl::Span<const v1::PositionLogprobs> positions) {
  return style_.endpoint == kChat ? WriteChat(positions)
                                  : WriteCompletion(positions);
}

Json LogprobsWriter::WriteChat(
    absl::Span<const v1::PositionLogprobs> positions) const {
  Json content = Json::array();
  for (const v1::PositionLogprobs& position : positions) {
    Json token = ChatToken(position.token());
    Json top = Json::array();
    for (const v1::TokenLogprob& other : position.top()) {
      top.push_back(ChatToken(other));
    }
    token["top_logprobs"] = std::move(top);
    content.push_back(std::move(token));
  }
  return {{"content", std::move(content)}, {"refusal", nullptr}};
}

Json LogprobsWriter::WriteCompletion(
    absl::Span<const v1::PositionLogprobs> positions) {
  Json tokens = Json::array(), numbers = Json::array();
  Json tops = Json::array(), offsets = Json::array();
  for (const v1::PositionLogprobs& position : positions) {
    const v1::TokenLogprob& token = position.token();
    const std::string text = TextOf(token);
    tokens.push_back(text);
    numbers.push_back(LogprobNumber(token.logprob()));
    offsets.push_back(offset_);
    offset_ += CountCharacters(token.text());
    Json top = Json::object();
    // Of two that look the same the more probable one is shown.
    const auto add = [&top](const std::string& key, const Json& number) {
      if (!top.contains(key)) top[key] = number;
    };
    for (const v1::TokenLogprob& other : position.top()) {
      add(TextOf(other), LogprobNumber(other.logprob()));
    }
    add(text, numbers.back());
    tops.push_back(std::isnan(token.logprob()) ? Json() : std::move(top));
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(numbers)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

std::string LogprobsWriter::TextOf(const v1::TokenLogprob& token) const {
  if (style_.tokens_as_token_ids) {
    return absl::StrCat("token_id:", token.token_id());
  }
  return token.text();
}

Json LogprobsWriter::ChatToken(const v1::TokenLogprob& token) const {
  // The bytes themselves, where the text has U+FFFD for a part of a character.
  Json bytes = Json::array();
  const Vocabulary& vocabulary = tokenizer_.vocabulary();
  if (token.token_id() < vocabulary.size()) {
    for (const char byte : vocabulary.token(token.token_id()).bytes) {
      bytes.push_back(static_cast<uint8_t>(byte));
    }
  }
  return {{"token", TextOf(token)},
          {"logprob", LogprobNumber(token.logprob())},
          {"bytes", std::move(bytes)}};
}

Json PromptLogprobs(absl::Span<const v1::PositionLogprobs> positions) {
  const auto describe = [](const v1::TokenLogprob& token) -> Json {
    return {{"logprob", LogprobNumber(token.logprob())},
            {"rank", token.rank()},
            {"decoded_token", token.text()}};
  };
  Json list = Json::array({nullptr});
  for (const v1::PositionLogprobs& position : positions) {
    Json ids = Json::object();
    ids[absl::StrCat(position.token().token_id())] = describe(position.token());
    for (const v1::TokenLogprob& token : position.top()) {
      ids[absl::StrCat(token.token_id())] = describe(token);
    }
    list.push_back(std::move(ids));
  }
  return list;
}

}  // namespace lockstep::openai
