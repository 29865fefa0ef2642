#include "frontend/generation/chat_renderer.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "common/status_macros.h"
#include "common/strict_json.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// As an object, where it is one and the template wants it so.
Json Arguments(const std::string& arguments, const ChatFormat& format) {
  if (format.arguments_are_text) return arguments;
  auto object = ParseOrderedJson(arguments, "arguments");
  if (!object.ok() || !object->is_object()) return arguments;
  return *std::move(object);
}

Json ToolCallJson(const ToolCall& call, const ChatFormat& format) {
  Json json = {{"type", "function"},
               {"function",
                {{"name", call.name},
                 {"arguments", Arguments(call.arguments, format)}}}};
  if (!call.id.empty()) json["id"] = call.id;
  return json;
}

Json MessageJson(const ChatTurn& turn, const ChatFormat& format) {
  Json message = {{"role", turn.role}, {"content", turn.content}};
  if (!turn.name.empty()) message["name"] = turn.name;
  if (!turn.tool_call_id.empty()) message["tool_call_id"] = turn.tool_call_id;
  if (!turn.reasoning.empty()) {
    // As Qwen's and DeepSeek's templates call it, and gpt-oss's.
    message["reasoning_content"] = turn.reasoning;
    message["thinking"] = turn.reasoning;
  }
  if (turn.tool_calls.empty()) return message;
  // Some templates tell by it that there are calls.
  if (turn.content.empty() && !format.no_content_is_empty) {
    message["content"] = nullptr;
  }
  for (const ToolCall& call : turn.tool_calls) {
    message["tool_calls"].push_back(ToolCallJson(call, format));
  }
  return message;
}

// The template's variables, named as Hugging Face names them.
std::string ChatContext(const ChatPrompt& chat, const ChatFormat& format) {
  Json messages = Json::array();
  for (const ChatTurn& turn : chat.messages) {
    messages.push_back(MessageJson(turn, format));
  }
  const Json context = {{"messages", std::move(messages)},
                        {"add_generation_prompt", chat.add_generation_prompt}};
  std::string text =
      context.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.pop_back();
  // What follows is JSON as it is.
  if (!chat.tools.empty()) {
    const auto append = [](std::string* out, const Tool& tool) {
      out->append(tool.json);
    };
    absl::StrAppend(&text, ",\"tools\":[",
                    absl::StrJoin(chat.tools, ",", append), "]");
  }
  if (chat.template_arguments.empty()) return text + "}";
  return absl::StrCat(text, ",", chat.template_arguments.substr(1));
}

// Cuts what the template wrote after the last message, as Hugging Face does:
// the message is looked for without its surrounding space, which templates
// strip, and keeps the space after it where the template did.
absl::StatusOr<std::string> CutAfterLastMessage(absl::string_view field,
                                                std::string text,
                                                absl::string_view content) {
  const absl::string_view words = absl::StripAsciiWhitespace(content);
  const size_t at =
      words.empty() ? std::string::npos : text.rfind(std::string(words));
  if (at == std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(
        field,
        " cannot be continued: the chat template does not write the "
        "text of the last message as it is."));
  }
  const absl::string_view with_space =
      absl::StripLeadingAsciiWhitespace(content);
  const bool keeps_space =
      text.compare(at, with_space.size(), with_space.data(),
                   with_space.size()) == 0;
  text.resize(at + (keeps_space ? with_space.size() : words.size()));
  return text;
}

}  // namespace

absl::StatusOr<std::string> RenderChat(absl::string_view field,
                                       const ChatPrompt& chat,
                                       const ChatFormat& format,
                                       const Tokenizer& tokenizer) {
  if (!tokenizer.info().chat_template.has_value()) {
    return absl::InvalidArgumentError(absl::StrCat(
        field,
        " cannot be rendered: the model has no chat template; send a "
        "text or token ids."));
  }
  const std::string context = ChatContext(chat, format);
  if (context.size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, " is ", context.size(),
        " bytes long as JSON, where some characters take more; at most ",
        kMaxTextBytes, " are allowed."));
  }
  auto text = tokenizer.RenderChat(context);
  if (!text.ok()) {
    return absl::Status(
        text.status().code(),
        absl::StrCat(field, " cannot be rendered: ", text.status().message()));
  }
  if (!chat.continue_final_message) return text;
  return CutAfterLastMessage(field, *std::move(text),
                             chat.messages.back().content);
}

}  // namespace lockstep
