#include "frontend/grpc/structured_output.h"

#include <absl/algorithm/container.h>
#include <absl/strings/str_cat.h>

#include <string>
#include <variant>
#include <vector>

#include "common/status_macros.h"
#include "frontend/structured_output/constraint.h"

namespace lockstep {
namespace {

absl::StatusOr<Constraint> ReadConstraint(const v1::StructuredOutput& output) {
  switch (output.kind_case()) {
    case v1::StructuredOutput::kJsonSchema:
      return ReadJsonSchema("structured_output.json_schema",
                            output.json_schema());
    case v1::StructuredOutput::kJsonObject:
      if (output.json_object()) return JsonSchema{kAnyObject};
      return absl::InvalidArgumentError(
          "structured_output.json_object is false; it must be true, or left "
          "out.");
    case v1::StructuredOutput::kRegex:
      return ReadRegex("structured_output.regex", output.regex());
    case v1::StructuredOutput::kChoice: {
      const auto& texts = output.choice().texts();
      return ReadChoices("structured_output.choice.texts",
                         {texts.begin(), texts.end()});
    }
    case v1::StructuredOutput::kGrammar:
      return ReadGrammar("structured_output.grammar", output.grammar());
    case v1::StructuredOutput::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "structured_output is empty; it must have one of json_schema, "
      "json_object, regex, choice and grammar.");
}

absl::Status RequireTool(const v1::GenerateRequest& request, ChatPrompt* chat) {
  chat->must_call = true;
  chat->required_tool = request.required_tool();
  const bool is_there =
      !request.has_required_tool() ||
      absl::c_any_of(chat->tools, [&](const Tool& tool) {
        return tool.name == request.required_tool();
      });
  if (is_there) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("required_tool is \"", request.required_tool(),
                   "\"; it must be the name of one of the tools."));
}

}  // namespace

absl::Status ReadStructuredOutput(const v1::GenerateRequest& request,
                                  GenerateSpec* spec) {
  if (!request.has_structured_output()) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(spec->constraint,
                            ReadConstraint(request.structured_output()));
  spec->constraint_field = "structured_output";
  return absl::OkStatus();
}

// A model that is told of no tool calls none.
absl::Status ReadToolChoice(const v1::GenerateRequest& request,
                            GenerateSpec* spec) {
  auto* chat = std::get_if<ChatPrompt>(&spec->prompt.prompt);
  const bool has_tools = chat != nullptr && !chat->tools.empty();
  const v1::ToolChoice choice = request.tool_choice();
  if (request.has_required_tool() && choice != v1::REQUIRED) {
    return absl::InvalidArgumentError(
        "required_tool is given; it must be left out unless tool_choice is "
        "REQUIRED.");
  }
  if (choice == v1::TOOL_CHOICE_UNSPECIFIED) return absl::OkStatus();
  if (choice == v1::NONE) {
    if (chat != nullptr) chat->tools.clear();
    return absl::OkStatus();
  }
  if (!has_tools) {
    return absl::InvalidArgumentError(absl::StrCat(
        "tool_choice is ", v1::ToolChoice_Name(choice),
        "; it must be left out where there is no chat with tools."));
  }
  return choice == v1::REQUIRED ? RequireTool(request, chat)
                                : absl::OkStatus();
}

}  // namespace lockstep
