#include "frontend/generation/chat_format.h"

#include <absl/algorithm/container.h>
#include <absl/strings/match.h>

#include <nlohmann/json.hpp>
#include <variant>

#include "frontend/generation/error_detail.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

MarkIds FindMarks(const OutputFormat& output, const Vocabulary& vocabulary) {
  const std::vector<absl::string_view> marks = MarksOf(output);
  MarkIds ids;
  if (marks.empty()) return ids;
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    const Vocabulary::Token token = vocabulary.token(id);
    if (token.special && absl::c_linear_search(marks, token.bytes)) {
      ids.emplace(token.bytes, id);
    }
  }
  return ids;
}

CallDialect MakeDialect(const OutputFormat& output,
                        const Tokenizer& tokenizer) {
  const auto& source = tokenizer.info().chat_template;
  return {.format = output.tools,
          .marks = FindMarks(output, tokenizer.vocabulary()),
          .is_fenced =
              source.has_value() && absl::StrContains(*source, "```json")};
}

// Whether the template writes the arguments of a call as the JSON that they
// are, when it is given a message of such a form.
bool WritesArguments(const Tokenizer& tokenizer, const Json& content,
                     const Json& arguments) {
  const Json call = {{"id", "call00001"},
                     {"type", "function"},
                     {"function", {{"name", "f"}, {"arguments", arguments}}}};
  const Json context = {{"messages",
                         {{{"role", "user"}, {"content", "x"}},
                          {{"role", "assistant"},
                           {"content", content},
                           {"tool_calls", {call}}}}}};
  const auto text = tokenizer.RenderChat(context.dump());
  return text.ok() && absl::StrContains(*text, "\"needle\"");
}

// Whether the template takes a message that says nothing at all.
bool TakesNoContent(const Tokenizer& tokenizer) {
  const Json context = {
      {"messages", {{{"role", "assistant"}, {"content", nullptr}}}}};
  return tokenizer.RenderChat(context.dump()).ok();
}

// What the template wants of a message with calls. One that knows none may be
// shown them all the same, in a chat that began with another model.
void FindFormOfCalls(const Tokenizer& tokenizer, ChatFormat* format) {
  const auto& source = tokenizer.info().chat_template;
  if (!source.has_value()) return;
  if (!absl::StrContains(*source, "tool_calls")) {
    format->no_content_is_empty = !TakesNoContent(tokenizer);
    return;
  }
  const Json arguments = {{"needle", 1}};
  for (const bool is_empty : {false, true}) {
    const Json content = is_empty ? Json("") : Json(nullptr);
    for (const bool are_text : {false, true}) {
      if (!WritesArguments(tokenizer, content,
                           are_text ? Json(arguments.dump()) : arguments)) {
        continue;
      }
      format->no_content_is_empty = is_empty;
      format->arguments_are_text = are_text;
      return;
    }
  }
}

}  // namespace

ChatFormat MakeChatFormat(const OutputFormat& output,
                          const Tokenizer& tokenizer) {
  ChatFormat format = {.output = output,
                       .mark_ids = {},
                       .calls = MakeDialect(output, tokenizer)};
  for (const auto& [mark, id] : format.calls.marks) {
    format.mark_ids.push_back(id);
  }
  absl::c_sort(format.mark_ids);
  FindFormOfCalls(tokenizer, &format);
  return format;
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
