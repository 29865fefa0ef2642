#include "tests/testing/fake_tokenizer.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>

#include "common/status_macros.h"
#include "tokenizer_service/incremental_decoder.h"
#include "tokenizer_service/text_check.h"

namespace lockstep {
namespace {

constexpr absl::string_view kSpecialTokens[] = {"<bos>", "<eos>", "<tool>"};
// What RenderChat does is not written here, only how its model answers.
constexpr char kChatTemplate[] = "<think></think><tool_call></tool_call>";

// The names of tools, or of the calls of a message: "{f g}"; of tools that have
// them their parameters, too.
std::string Names(const nlohmann::json& tools) {
  std::string names;
  for (const auto& tool : tools) {
    const auto& function = tool["function"];
    absl::StrAppend(&names, names.empty() ? "{" : " ",
                    function.value("name", "?"));
    const auto parameters = function.find("parameters");
    if (parameters != function.end()) names += parameters->dump();
  }
  return names.empty() ? names : names + "}";
}

}  // namespace

FakeTokenizer::FakeTokenizer(bool has_chat_template)
    : vocabulary_(Vocabulary::Join::kByteLevel) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = byte;
    vocabulary_.Add(absl::string_view(&c, 1), Vocabulary::Kind::kText);
  }
  for (const absl::string_view token : kSpecialTokens) {
    vocabulary_.Add(token, Vocabulary::Kind::kText, /*special=*/true);
  }
  info_.vocabulary_size = vocabulary_.size();
  info_.bos_token_id = kBos;
  info_.eos_token_ids = {kEos};
  if (has_chat_template) info_.chat_template = kChatTemplate;
}

absl::StatusOr<std::vector<uint32_t>> FakeTokenizer::Encode(
    absl::string_view text, bool add_special_tokens) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckText("text", text));
  std::vector<uint32_t> ids;
  if (add_special_tokens) ids.push_back(kBos);
  while (!text.empty()) {
    uint32_t id = static_cast<uint8_t>(text.front());
    size_t size = 1;
    for (uint32_t special = kBos; special < kVocabularySize; ++special) {
      const absl::string_view token = kSpecialTokens[special - kBos];
      if (!absl::StartsWith(text, token)) continue;
      id = special;
      size = token.size();
    }
    ids.push_back(id);
    text.remove_prefix(size);
  }
  return ids;
}

absl::StatusOr<std::string> FakeTokenizer::Decode(
    absl::Span<const uint32_t> ids, bool skip_special_tokens) const {
  IncrementalDecoder decoder(&vocabulary_, skip_special_tokens);
  LOCKSTEP_ASSIGN_OR_RETURN(std::string text, decoder.Add(ids));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string rest, decoder.Finish());
  return text + rest;
}

absl::StatusOr<std::string> FakeTokenizer::RenderChat(
    absl::string_view context_json) const {
  if (!info_.chat_template.has_value()) {
    return absl::FailedPreconditionError("the model has no chat template.");
  }
  const auto context = nlohmann::json::parse(
      context_json.begin(), context_json.end(), nullptr, false);
  if (!context.is_object()) {
    return absl::InvalidArgumentError("context_json is no JSON object.");
  }
  std::string text(kSpecialTokens[0]);
  text += Names(context.value("tools", nlohmann::json()));
  for (const auto& message :
       context.value("messages", nlohmann::json::array())) {
    const std::string role = message.value("role", "");
    const auto said = message.value("content", nlohmann::json());
    const std::string content =
        said.is_string() ? said.get<std::string>() : std::string();
    if (role == "raise") return absl::InvalidArgumentError(content);
    absl::StrAppend(&text, "[", role, "]", content,
                    Names(message.value("tool_calls", nlohmann::json())));
  }
  if (context.value("add_generation_prompt", false)) text += "[assistant]";
  return text;
}

}  // namespace lockstep
