#include "frontend/grpc/chat_prompt.h"

#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "common/strict_json.h"
#include "frontend/generation/spec_check.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// Variables of the chat template that other fields set.
constexpr const char* kReservedArguments[] = {
    "messages", "add_generation_prompt", "continue_final_message", "documents",
    "tools"};

ChatTurn FromMessage(const v1::ChatMessage& message) {
  ChatTurn turn = {message.role(),
                   message.content(),
                   message.name(),
                   message.reasoning(),
                   {},
                   message.tool_call_id()};
  for (const v1::ToolCall& call : message.tool_calls()) {
    turn.tool_calls.push_back({call.id(), call.name(), call.arguments()});
  }
  return turn;
}

// JSON of the client's own, with its keys as they came; `is_good` says whether
// it is of the right kind.
absl::StatusOr<Json> ParseJson(const std::string& text, const char* field,
                               bool (Json::*is_good)() const,
                               absl::string_view what_it_must_be) {
  LOCKSTEP_ASSIGN_OR_RETURN(Json json, ParseOrderedJson(text, field));
  if ((json.*is_good)()) return json;
  return absl::InvalidArgumentError(
      absl::StrCat(field, " is no ", what_it_must_be, "."));
}

// As OpenAI's API describes it: what the client does not say is not there, as
// templates show all of it.
absl::StatusOr<Tool> FromTool(const v1::Tool& tool) {
  Json function = {{"name", tool.name()}};
  if (tool.has_description()) function["description"] = tool.description();
  if (tool.has_parameters()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        function["parameters"],
        ParseJson(tool.parameters(), "chat.tools.parameters", &Json::is_object,
                  "JSON object"));
  }
  if (tool.has_strict()) function["strict"] = tool.strict();
  const Json json = {{"type", "function"}, {"function", std::move(function)}};
  return Tool{tool.name(), json.dump(), tool.parameters(), tool.strict()};
}

absl::StatusOr<std::vector<Tool>> FromTools(const v1::ChatPrompt& chat) {
  std::vector<std::string> names;
  for (const v1::Tool& tool : chat.tools()) names.push_back(tool.name());
  LOCKSTEP_RETURN_IF_ERROR(CheckToolNames("chat.tools", names));
  std::vector<Tool> tools;
  for (const v1::Tool& tool : chat.tools()) {
    LOCKSTEP_ASSIGN_OR_RETURN(tools.emplace_back(), FromTool(tool));
  }
  return tools;
}

absl::StatusOr<std::string> FromArguments(const v1::ChatPrompt& chat) {
  Json arguments = Json::object();
  if (chat.has_template_arguments()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        arguments,
        ParseJson(chat.template_arguments(), "chat.template_arguments",
                  &Json::is_object, "JSON object"));
  }
  for (const char* reserved : kReservedArguments) {
    if (!arguments.contains(reserved)) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "chat.template_arguments has ", reserved,
        ", which would replace what the chat says of it; leave it out."));
  }
  if (chat.has_documents()) {
    LOCKSTEP_ASSIGN_OR_RETURN(arguments["documents"],
                              ParseJson(chat.documents(), "chat.documents",
                                        &Json::is_array, "JSON list"));
  }
  return arguments.empty() ? "" : arguments.dump();
}

}  // namespace

absl::StatusOr<ChatPrompt> ToChatPrompt(const v1::ChatPrompt& chat) {
  ChatPrompt prompt;
  prompt.continue_final_message = chat.continue_final_message();
  if (prompt.continue_final_message && chat.add_generation_prompt()) {
    return absl::InvalidArgumentError(
        "chat.add_generation_prompt is true; it must be false where "
        "chat.continue_final_message is true.");
  }
  prompt.add_generation_prompt = chat.has_add_generation_prompt()
                                     ? chat.add_generation_prompt()
                                     : !prompt.continue_final_message;
  for (const v1::ChatMessage& message : chat.messages()) {
    prompt.messages.push_back(FromMessage(message));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(prompt.tools, FromTools(chat));
  LOCKSTEP_ASSIGN_OR_RETURN(prompt.template_arguments, FromArguments(chat));
  return prompt;
}

}  // namespace lockstep
