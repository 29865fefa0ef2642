#include "frontend/generation/chat_format.h"

#include <absl/algorithm/container.h>
#include <absl/strings/match.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "frontend/generation/error_detail.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

std::vector<uint32_t> MarkIds(const OutputFormat& output,
                              const Vocabulary& vocabulary) {
  const std::vector<absl::string_view> marks = MarksOf(output);
  std::vector<uint32_t> ids;
  if (marks.empty()) return ids;
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    const Vocabulary::Token token = vocabulary.token(id);
    if (token.special && absl::c_linear_search(marks, token.bytes)) {
      ids.push_back(id);
    }
  }
  return ids;
}

// Whether the template writes `arguments` of a call as the JSON that they are.
bool WritesArguments(const Tokenizer& tokenizer, const Json& arguments) {
  const Json call = {{"id", "call00001"},
                     {"type", "function"},
                     {"function", {{"name", "f"}, {"arguments", arguments}}}};
  const Json context = {{"messages",
                         {{{"role", "user"}, {"content", "x"}},
                          {{"role", "assistant"},
                           {"content", nullptr},
                           {"tool_calls", {call}}}}}};
  const auto text = tokenizer.RenderChat(context.dump());
  return text.ok() && absl::StrContains(*text, "\"needle\"");
}

bool ArgumentsAreText(const Tokenizer& tokenizer) {
  const auto& source = tokenizer.info().chat_template;
  if (!source.has_value() || !absl::StrContains(*source, "tool_calls")) {
    return false;
  }
  const Json arguments = {{"needle", 1}};
  return !WritesArguments(tokenizer, arguments) &&
         WritesArguments(tokenizer, arguments.dump());
}

}  // namespace

ChatFormat MakeChatFormat(const OutputFormat& output,
                          const Tokenizer& tokenizer) {
  return {output, MarkIds(output, tokenizer.vocabulary()),
          ArgumentsAreText(tokenizer)};
}

absl::Status CheckTools(const PromptSpec& prompt, const ChatFormat& format) {
  const auto* chat = std::get_if<ChatPrompt>(&prompt.prompt);
  const bool has_tools = chat != nullptr && !chat->tools.empty();
  if (!has_tools || format.output.tools != ToolFormat::kNone) {
    return absl::OkStatus();
  }
  return WithField(
      WithReason(
          absl::InvalidArgumentError(
              "tools is not supported: it is not known how this model "
              "writes calls; --tool_call_parser of the gateway says it."),
          kUnsupportedParameter),
      "tools");
}

}  // namespace lockstep
