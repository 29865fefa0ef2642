#include "frontend/openai/messages.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "frontend/generation/error_detail.h"
#include "frontend/generation/spec_check.h"
#include "frontend/openai/json_body.h"
#include "frontend/openai/tools.h"

namespace lockstep::openai {
namespace {

using nlohmann::json;

// Of a message: what is refused unless it is null or empty.
constexpr absl::string_view kRefused[] = {"audio"};
constexpr absl::string_view kKnown[] = {
    "role",       "content",      "name",     "function_call",
    "tool_calls", "tool_call_id", "reasoning_content",
    "reasoning",  "refusal",      "annotations"};

// Set by the fields of the same name, or by the tokenizer.
constexpr absl::string_view kReservedArguments[] = {
    "messages", "add_generation_prompt", "continue_final_message", "documents",
    "tools"};

template <typename Names>
bool Has(const Names& names, absl::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

// `value`: what of the field it is that is refused.
absl::Status Refuse(const std::string& field, absl::string_view why,
                    absl::string_view value = "") {
  return WithField(WithReason(absl::InvalidArgumentError(
                                  absl::StrCat(field, value,
                                               " is not supported: ", why,
                                               ".")),
                              kUnsupportedParameter),
                   field);
}

absl::Status CheckKeys(const json& message, const std::string& name,
                       UnknownFields* unknown) {
  for (const auto& [key, value] : message.items()) {
    if (Has(kRefused, key)) {
      if (value.is_null() || value.empty()) continue;
      return Refuse(name + "." + key, "a message holds text and tool calls");
    }
    if (!Has(kKnown, key)) unknown->Count("messages." + key);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadPart(const json& part, const std::string& name,
                                     UnknownFields* unknown) {
  if (part.is_string()) return part.get<std::string>();
  unknown->CountOthers(part, "messages.content.", {"type", "text"});
  if (!part.is_object()) {
    return FieldError(name, part, "an object with a type");
  }
  FieldReader reader(part, name + ".");
  const std::string type = reader.String("type").value_or("");
  LOCKSTEP_RETURN_IF_ERROR(reader.status());
  if (type != "text") {
    return Refuse(name, "parts are of type text",
                  absl::StrCat(" of type \"", type.substr(0, 32), "\""));
  }
  if (reader.Find("text") == nullptr) reader.Fail("text", "a string");
  std::string text = reader.String("text").value_or("");
  LOCKSTEP_RETURN_IF_ERROR(reader.status());
  return text;
}

// Parts are lines of their own, as templates that know no parts want them.
absl::StatusOr<std::string> ReadContent(const json& content,
                                        const std::string& name,
                                        UnknownFields* unknown) {
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array()) {
    return FieldError(name, content, "a string or a list of parts");
  }
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const std::string part,
        ReadPart(content[i], absl::StrCat(name, "[", i, "]"), unknown));
    absl::StrAppend(&text, i == 0 ? "" : "\n", part);
  }
  return text;
}

absl::StatusOr<ToolCall> ReadCall(const json& function, const std::string& name,
                                  UnknownFields* unknown) {
  unknown->CountOthers(function, "messages.tool_calls.function.",
                       {"name", "arguments"});
  ToolCall call;
  FieldReader fields(function, name + ".");
  const auto called = fields.String("name");
  if (!called.has_value()) fields.Fail("name", "a string");
  call.arguments = fields.String("arguments").value_or("{}");
  LOCKSTEP_RETURN_IF_ERROR(fields.status());
  call.name = *called;
  return call;
}

absl::StatusOr<ToolCall> ReadToolCall(const json& value,
                                      const std::string& name,
                                      UnknownFields* unknown) {
  if (!value.is_object()) return FieldError(name, value, "an object");
  unknown->CountOthers(value, "messages.tool_calls.",
                       {"id", "type", "function", "index"});
  FieldReader reader(value, name + ".");
  const std::string id = reader.String("id").value_or("");
  const json* function = reader.Object("function");
  if (function == nullptr) reader.Fail("function", "an object");
  LOCKSTEP_RETURN_IF_ERROR(reader.status());
  LOCKSTEP_ASSIGN_OR_RETURN(
      ToolCall call, ReadCall(*function, name + ".function", unknown));
  call.id = id;
  return call;
}

absl::StatusOr<std::vector<ToolCall>> ReadToolCalls(const json& message,
                                                    const std::string& name,
                                                    UnknownFields* unknown) {
  std::vector<ToolCall> calls;
  FieldReader reader(message, name + ".");
  if (const json* function = reader.Object("function_call")) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        calls.emplace_back(),
        ReadCall(*function, name + ".function_call", unknown));
  }
  LOCKSTEP_RETURN_IF_ERROR(reader.status());
  const auto found = message.find("tool_calls");
  if (found == message.end() || found->is_null()) return calls;
  if (!found->is_array()) {
    return FieldError(name + ".tool_calls", *found, "a list");
  }
  for (const json& value : *found) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        calls.emplace_back(),
        ReadToolCall(value,
                     absl::StrCat(name, ".tool_calls[", calls.size(), "]"),
                     unknown));
  }
  return calls;
}

absl::StatusOr<ChatTurn> ReadMessage(const json& message,
                                     const std::string& name,
                                     UnknownFields* unknown) {
  if (!message.is_object()) return FieldError(name, message, "an object");
  FieldReader reader(message, name + ".");
  ChatTurn turn;
  turn.role = reader.String("role").value_or("");
  turn.name = reader.String("name").value_or("");
  turn.tool_call_id = reader.String("tool_call_id").value_or("");
  turn.reasoning = reader.String("reasoning_content").value_or("");
  if (turn.reasoning.empty()) {
    turn.reasoning = reader.String("reasoning").value_or("");
  }
  LOCKSTEP_RETURN_IF_ERROR(reader.status());
  if (turn.role == "function") turn.role = "tool";  // as it was called before
  LOCKSTEP_RETURN_IF_ERROR(CheckKeys(message, name, unknown));
  LOCKSTEP_ASSIGN_OR_RETURN(turn.tool_calls, ReadToolCalls(message, name, unknown));
  const json* content = reader.Find("content");
  // An answer without a text comes back as null.
  if (content == nullptr && turn.role == "assistant") return turn;
  LOCKSTEP_ASSIGN_OR_RETURN(
      turn.content,
      ReadContent(content == nullptr ? json() : *content, name + ".content",
                  unknown));
  return turn;
}

absl::Status ReadArguments(FieldReader* reader, absl::string_view body,
                           ChatPrompt* chat) {
  using Ordered = nlohmann::ordered_json;
  Ordered arguments = Ordered::object();
  if (const json* given = reader->Object("chat_template_kwargs")) {
    for (const auto& [key, value] : given->items()) {
      if (!Has(kReservedArguments, key)) continue;
      return WithField(
          absl::InvalidArgumentError(absl::StrCat(
              "chat_template_kwargs.", key,
              " would replace what the request says of it; leave it out.")),
          "chat_template_kwargs");
    }
    arguments = OrderedMember(body, "chat_template_kwargs");
  }
  if (const auto effort = reader->String("reasoning_effort")) {
    arguments["reasoning_effort"] = *effort;
  }
  if (const json* documents = reader->Find("documents")) {
    if (!documents->is_array()) reader->Fail("documents", "a list");
    arguments["documents"] = OrderedMember(body, "documents");
  }
  if (!arguments.empty()) chat->template_arguments = arguments.dump();
  return reader->status();
}

}  // namespace

absl::StatusOr<PromptSpec> ReadChat(const json& request, absl::string_view body,
                                    UnknownFields* unknown) {
  FieldReader reader(request);
  const json* messages = reader.Find("messages");
  if (messages == nullptr || !messages->is_array()) {
    reader.Fail("messages", "a list of messages");
    return reader.status();
  }
  // First of all, as whatever walks over the messages takes long.
  LOCKSTEP_RETURN_IF_ERROR(CheckNumberOfMessages("messages", messages->size()));
  ChatPrompt chat;
  for (size_t i = 0; i < messages->size(); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        ChatTurn turn, ReadMessage((*messages)[i],
                                   absl::StrCat("messages[", i, "]"), unknown));
    chat.messages.push_back(std::move(turn));
  }
  chat.continue_final_message =
      reader.Bool("continue_final_message").value_or(false);
  const auto add = reader.Bool("add_generation_prompt");
  if (chat.continue_final_message && add.value_or(false)) {
    reader.Fail("add_generation_prompt",
                "false where continue_final_message is true");
  }
  chat.add_generation_prompt = add.value_or(!chat.continue_final_message);
  LOCKSTEP_RETURN_IF_ERROR(ReadArguments(&reader, body, &chat));
  LOCKSTEP_RETURN_IF_ERROR(ReadTools(request, body, unknown, &chat));
  PromptSpec prompt;
  prompt.prompt = std::move(chat);
  prompt.add_special_tokens = reader.Bool("add_special_tokens").value_or(false);
  prompt.field = "messages";
  LOCKSTEP_RETURN_IF_ERROR(reader.status());
  return prompt;
}

}  // namespace lockstep::openai
