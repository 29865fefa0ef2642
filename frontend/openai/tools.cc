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

// What tools are called; before, they were functions without the tools around
// them, of which an answer called one.
struct Names {
  const char* tools;
  const char* choice;
  bool are_old;
};
constexpr Names kNames = {"tools", "tool_choice", false};
constexpr Names kOldNames = {"functions", "function_call", true};

absl::Status Refuse(const std::string& what, absl::string_view why,
                    const char* field) {
  return WithField(WithReason(absl::InvalidArgumentError(absl::StrCat(
                                  what, " is not supported: ", why, ".")),
                              kUnsupportedParameter),
                   field);
}

// Without its JSON. `name` ends with a point.
absl::StatusOr<Tool> ReadFunction(const json& function, const std::string& name,
                                  const char* field) {
  FieldReader fields(function, name);
  const auto called = fields.String("name");
  if (!called.has_value()) fields.Fail("name", "a string");
  fields.String("description");
  fields.Object("parameters");
  const bool is_strict = fields.Bool("strict").value_or(false);
  if (!fields.status().ok()) return WithField(fields.status(), field);
  return Tool{
      .name = *called, .json = "", .parameters = "", .is_strict = is_strict};
}

// The function that a tool is.
absl::StatusOr<Tool> ReadTool(const json& tool, const std::string& name,
                              const Names& names) {
  if (!tool.is_object()) {
    return WithField(FieldError(name, tool, "an object"), names.tools);
  }
  if (names.are_old) return ReadFunction(tool, name + ".", names.tools);
  FieldReader reader(tool, name + ".");
  const std::string type = reader.String("type").value_or("function");
  const json* function = reader.Object("function");
  if (!reader.status().ok()) return WithField(reader.status(), names.tools);
  if (type != "function") {
    return Refuse(absl::StrCat(name, " of type \"", type.substr(0, 32), "\""),
                  "tools are functions", names.tools);
  }
  if (function == nullptr) {
    return WithField(FieldError(name + ".function", json(), "an object"),
                     names.tools);
  }
  return ReadFunction(*function, name + ".function.", names.tools);
}

// The one of the tools that an object names.
absl::StatusOr<std::string> ReadName(const json& object,
                                     const std::string& prefix,
                                     const std::vector<Tool>& tools) {
  FieldReader fields(object, prefix);
  const std::string name = fields.String("name").value_or("");
  const bool is_there = absl::c_any_of(
      tools, [&](const Tool& tool) { return tool.name == name; });
  if (!is_there) fields.Fail("name", "the name of one of the tools");
  LOCKSTEP_RETURN_IF_ERROR(fields.status());
  return name;
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
                  "it names one function", kNames.choice);
  }
  return ReadName(*function, "tool_choice.function.", tools);
}

// What the model may do with the chat's tools; it is not told of any where it
// may do nothing.
absl::Status ReadChoice(const json& request, const Names& names,
                        ChatPrompt* chat) {
  FieldReader reader(request);
  const json* choice = reader.Find(names.choice);
  if (choice == nullptr) return absl::OkStatus();
  if (*choice == "none") {
    chat->tools.clear();
    return absl::OkStatus();
  }
  const bool is_named = choice->is_object();
  const bool is_required = *choice == "required" && !names.are_old;
  if (!is_named && *choice != "auto" && !is_required) {
    reader.Fail(names.choice,
                names.are_old
                    ? "\"none\", \"auto\" or one function's name"
                    : "\"none\", \"auto\", \"required\" or one function's name");
  }
  if (chat->tools.empty()) {
    reader.Fail(names.choice, absl::StrCat("left out where there are no ",
                                           names.tools));
  }
  LOCKSTEP_RETURN_IF_ERROR(reader.status());
  chat->must_call = *choice != "auto";
  if (!is_named) return absl::OkStatus();
  auto named = names.are_old
                   ? ReadName(*choice, "function_call.", chat->tools)
                   : ReadNamedTool(*choice, chat->tools);
  if (!named.ok()) return WithField(named.status(), names.choice);
  chat->required_tool = *std::move(named);
  return absl::OkStatus();
}

constexpr std::initializer_list<absl::string_view> kOfFunction = {
    "name", "description", "parameters", "strict"};

// Of a tool, or of the choice of one, members that are not known.
void CountUnknown(const json& tool, const Names& names, const char* field,
                  std::initializer_list<absl::string_view> of_function,
                  UnknownFields* unknown) {
  const std::string prefix = absl::StrCat(field, ".");
  if (names.are_old) return unknown->CountOthers(tool, prefix, of_function);
  unknown->CountOthers(tool, prefix, {"type", "function"});
  if (!tool.is_object() || !tool.contains("function")) return;
  unknown->CountOthers(tool["function"], prefix + "function.", of_function);
}

// Neither null nor empty.
bool Has(const json& request, const char* name) {
  const auto found = request.find(name);
  return found != request.end() && !found->is_null() && !found->empty();
}

// OpenAI's API has them as tools, and so have templates.
nlohmann::ordered_json AsTool(nlohmann::ordered_json function) {
  return {{"type", "function"}, {"function", std::move(function)}};
}

bool HasFunctions(const json& request) {
  return Has(request, kOldNames.tools) || Has(request, kOldNames.choice);
}

}  // namespace

absl::Status ReadTools(const json& request, absl::string_view body,
                       UnknownFields* unknown, ChatPrompt* chat) {
  const Names& names = HasFunctions(request) ? kOldNames : kNames;
  FieldReader reader(request);
  const json* tools = reader.Find(names.tools);
  if (tools != nullptr && !tools->is_array()) {
    reader.Fail(names.tools, "a list");
  }
  if (names.are_old && (Has(request, kNames.tools) ||
                        Has(request, kNames.choice))) {
    reader.Fail(Has(request, names.tools) ? names.tools : names.choice,
                "left out where there are tools");
  }
  LOCKSTEP_RETURN_IF_ERROR(reader.status());
  const size_t number = tools == nullptr ? 0 : tools->size();
  std::vector<std::string> called;
  for (size_t i = 0; i < number; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        chat->tools.emplace_back(),
        ReadTool((*tools)[i], absl::StrCat(names.tools, "[", i, "]"), names));
    CountUnknown((*tools)[i], names, names.tools, kOfFunction, unknown);
    called.push_back(chat->tools.back().name);
  }
  const absl::Status status = CheckToolNames(names.tools, called);
  if (!status.ok()) return WithField(status, names.tools);
  LOCKSTEP_RETURN_IF_ERROR(ReadChoice(request, names, chat));
  if (const json* choice = reader.Find(names.choice)) {
    CountUnknown(*choice, names, names.choice, {"name"}, unknown);
  }
  if (chat->tools.empty()) return absl::OkStatus();
  const nlohmann::ordered_json ordered = OrderedMember(body, names.tools);
  for (size_t i = 0; i < number; ++i) {
    Tool& tool = chat->tools[i];
    const nlohmann::ordered_json whole =
        names.are_old ? AsTool(ordered[i]) : ordered[i];
    tool.json = whole.dump();
    const auto& function = whole["function"];
    const auto schema = function.find("parameters");
    const bool has_schema = schema != function.end() && !schema->is_null();
    if (has_schema) tool.parameters = schema->dump();
  }
  return absl::OkStatus();
}

}  // namespace lockstep::openai
