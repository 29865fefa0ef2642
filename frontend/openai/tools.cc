#include "frontend/openai/tools.h"

#include <absl/strings/str_cat.h>

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
constexpr char kNoGrammar[] = "structured output is not supported yet";

absl::Status Refuse(const std::string& what, absl::string_view why,
                    const char* field) {
  return WithField(WithReason(absl::InvalidArgumentError(absl::StrCat(
                                  what, " is not supported: ", why, ".")),
                              kUnsupportedParameter),
                   field);
}

// The name of the function that a tool is.
absl::StatusOr<std::string> ReadTool(const json& tool,
                                     const std::string& name) {
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
  if (is_strict) return Refuse(name + ".function.strict", kNoGrammar, kTools);
  return *called;
}

// Whether the model is told of the tools.
absl::StatusOr<bool> ReadChoice(const json& request, bool has_tools) {
  FieldReader reader(request);
  const json* choice = reader.Find("tool_choice");
  if (choice == nullptr || *choice == "none") return choice == nullptr;
  if (choice->is_object() || *choice == "required") {
    return Refuse(choice->is_object() ? "tool_choice of one tool"
                                      : "tool_choice \"required\"",
                  kNoGrammar, "tool_choice");
  }
  if (*choice != "auto") reader.Fail("tool_choice", "\"none\" or \"auto\"");
  if (!has_tools) {
    reader.Fail("tool_choice", "left out where there are no tools");
  }
  LOCKSTEP_RETURN_IF_ERROR(reader.status());
  return true;
}

}  // namespace

absl::Status ReadTools(const json& request, absl::string_view body,
                       ChatPrompt* chat) {
  FieldReader reader(request);
  const json* tools = reader.Find(kTools);
  if (tools != nullptr && !tools->is_array()) reader.Fail(kTools, "a list");
  LOCKSTEP_RETURN_IF_ERROR(reader.status());
  const size_t number = tools == nullptr ? 0 : tools->size();
  std::vector<std::string> names;
  for (size_t i = 0; i < number; ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        names.emplace_back(),
        ReadTool((*tools)[i], absl::StrCat(kTools, "[", i, "]")));
  }
  const absl::Status status = CheckToolNames(kTools, names);
  if (!status.ok()) return WithField(status, kTools);
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_told,
                            ReadChoice(request, number > 0));
  if (!is_told || number == 0) return absl::OkStatus();
  const nlohmann::ordered_json ordered = OrderedMember(body, kTools);
  for (size_t i = 0; i < number; ++i) {
    chat->tools.push_back({std::move(names[i]), ordered[i].dump()});
  }
  return absl::OkStatus();
}

}  // namespace lockstep::openai
