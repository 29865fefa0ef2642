#include "frontend/openai/tools.h"

#include <absl/algorithm/container.h>
#include <absl/strings/str_cat.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "frontend/generation/error_detail.h"
#include "frontend/generation/spec_check.h"
#include "frontend/openai/field_reader.h"
#include "frontend/openai/json_body.h"

namespace lockstep::openai {
namespace {

using nlohmann::json;

constexpr char kTools[] = "tools";
constexpr char kChoice[] = "tool_choice";

absl::Status Refuse(const std::string& what, absl::string_view why,
                    const char* field) {
  return WithField(WithReason(absl::InvalidArgumentError(absl::StrCat(
                                  what, " is not supported: ", why, ".")),
                              kUnsupportedParameter),
                   field);
}

// The function that a tool is, without its JSON.
absl::StatusOr<Tool> ReadTool(const json& tool, const std::string& name) {
  if (!tool.is_object()) {
    return WithField(FieldError(name, tool, "an object"), kTools);
  }
  FieldReader reader(tool, name + ".");
  const std::string type = reader.String("type").value_or("function");
  const json* function = reader.Object("function");
  if (!reader.status().ok()) return WithField(reader.status(), kTools);
  if (type != "function") {
    return Refuse(absl::StrCat(name, " of type \"", type.substr(0, 32), "\""),
                  "tools are functions", kTools);
  }
  if (function == nullptr) {
    return WithField(FieldError(name + ".function", json(), "an object"),
                     kTools);
  }
  FieldReader fields(*function, name + ".function.");
  const auto called = fields.String("name");
  if (!called.has_value()) fields.Fail("name", "a string");
  fields.String("description");
  fields.Object("parameters");
  const bool is_strict = fields.Bool("strict").value_or(false);
  if (!fields.status().ok()) return WithField(fields.status(), kTools);
  return Tool{
      .name = *called, .json = "", .parameters = "", .is_strict = is_strict};
}

// The one tool that {"type": "function", "function": {"name": …}} names.
absl::StatusOr<std::string> ReadNamedTool(const json& choice,
                                          const std::vector<Tool>& tools) {
  FieldReader reader(choice, "tool_choice.");
  const std::string type = reader.String("type").value_or("function");
  const json* function = reader.Object("function");
  LOCKSTEP_RETURN_IF_ERROR(reader.status());
  if (type != "function" || function == nullptr) {
    return Refuse(absl::StrCat("tool_choice of type \"", type.substr(0, 32),
                               "\""),
                  "it names one function", kChoice);
  }
  FieldReader fields(*function, "tool_choice.function.");
  const std::string name = fields.String("name").value_or("");
  const bool is_there = absl::c_any_of(
      tools, [&](const Tool& tool) { return tool.name == name; });
  if (!is_there) fields.Fail("name", "the name of one of the tools");
  LOCKSTEP_RETURN_IF_ERROR(fields.status());
  return name;
}

// What the model may do with the chat's tools; it is not told of any where it
// may do nothing.
absl::Status ReadChoice(const json& request, ChatPrompt* chat) {
  FieldReader reader(request);
  const json* choice = reader.Find(kChoice);
  if (choice == nullptr) return absl::OkStatus();
  if (*choice == "none") {
    chat->tools.clear();
    return absl::OkStatus();
  }
  const bool is_named = choice->is_object();
  if (!is_named && *choice != "auto" && *choice != "required") {
    reader.Fail(kChoice,
                "\"none\", \"auto\", \"required\" or one function's name");
  }
  if (chat->tools.empty()) {
    reader.Fail(kChoice, "left out where there are no tools");
  }
  LOCKSTEP_RETURN_IF_ERROR(reader.status());
  chat->must_call = *choice != "auto";
  if (!is_named) return absl::OkStatus();
  auto named = ReadNamedTool(*choice, chat->tools);
  if (!named.ok()) return WithField(named.status(), kChoice);
  chat->required_tool = *std::move(named);
  return absl::OkStatus();
}

// Of a tool, or of the choice of one.
void CountUnknown(const json& tool, const std::string& prefix,
                  std::initializer_list<absl::string_view> known,
                  UnknownFields* unknown) {
  unknown->CountOthers(tool, prefix, {"type", "function"});
  if (!tool.is_object() || !tool.contains("function")) return;
  unknown->CountOthers(tool["function"], prefix + "function.", known);
}

}  // namespace

absl::Status ReadTools(const json& request, absl::string_view body,
                       UnknownFields* unknown, ChatPrompt* chat) {
  FieldReader reader(request);
  const json* tools = reader.Find(kTools);
  if (tools != nullptr && !tools->is_array()) reader.Fail(kTools, "a list");
  LOCKSTEP_RETURN_IF_ERROR(reader.status());
  const size_t number = tools == nullptr ? 0 : tools->size();
  std::vector<std::string> names;
  for (size_t i = 0; i < number; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        chat->tools.emplace_back(),
        ReadTool((*tools)[i], absl::StrCat(kTools, "[", i, "]")));
    CountUnknown((*tools)[i], "tools.",
                 {"name", "description", "parameters", "strict"}, unknown);
    names.push_back(chat->tools.back().name);
  }
  const absl::Status status = CheckToolNames(kTools, names);
  if (!status.ok()) return WithField(status, kTools);
  LOCKSTEP_RETURN_IF_ERROR(ReadChoice(request, chat));
  if (const json* choice = reader.Find(kChoice)) {
    CountUnknown(*choice, "tool_choice.", {"name"}, unknown);
  }
  if (chat->tools.empty()) return absl::OkStatus();
  const nlohmann::ordered_json ordered = OrderedMember(body, kTools);
  for (size_t i = 0; i < number; ++i) {
    Tool& tool = chat->tools[i];
    tool.json = ordered[i].dump();
    const auto& function = ordered[i]["function"];
    const auto schema = function.find("parameters");
    const bool has_schema = schema != function.end() && !schema->is_null();
    if (has_schema) tool.parameters = schema->dump();
  }
  return absl::OkStatus();
}

}  // namespace lockstep::openai
