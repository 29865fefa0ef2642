#include "frontend/generation/answer_limits.h"

#include <absl/algorithm/container.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <string>
#include <variant>
#include <vector>

#include "common/error_reason.h"
#include "frontend/generation/error_detail.h"
#include "frontend/structured_output/answer_grammar.h"

namespace lockstep {
namespace {

// How the worker calls what it got.
constexpr absl::string_view kWorkersFields[] = {
    "grammar.json_schema", "grammar.regex", "grammar.lark"};

bool IsLimited(const Constraint& constraint) {
  return !std::holds_alternative<std::monostate>(constraint);
}

// Where a call is required its arguments are as the tool says; else those of
// strict tools are, and of others any object.
std::vector<CallableTool> CallableTools(const ChatPrompt& chat,
                                        bool is_limited) {
  const bool any_is_strict = absl::c_any_of(
      chat.tools, [](const Tool& tool) { return tool.is_strict; });
  std::vector<CallableTool> tools;
  if (!chat.must_call && !any_is_strict && !is_limited) return tools;
  for (const Tool& tool : chat.tools) {
    if (!chat.required_tool.empty() && tool.name != chat.required_tool) {
      continue;
    }
    const bool as_it_says = chat.must_call || tool.is_strict;
    tools.push_back({tool.name, as_it_says ? tool.parameters : kAnyObject});
  }
  return tools;
}

}  // namespace

std::optional<v1::Grammar> GrammarOf(const GenerateSpec& spec,
                                     const ChatReading* reading) {
  AnswerLimits limits;
  AnswerWriting writing;
  limits.constraint = spec.constraint;
  if (const auto* chat = std::get_if<ChatPrompt>(&spec.prompt.prompt)) {
    limits.tools = CallableTools(*chat, IsLimited(spec.constraint));
    limits.must_call = chat->must_call;
    limits.several_calls = spec.parallel_tool_calls;
  }
  if (reading != nullptr) {
    writing.reasoning = reading->format->output.reasoning;
    writing.starts_in_reasoning = reading->options.starts_in_reasoning;
    writing.calls = reading->format->calls;
  }
  return MakeAnswerGrammar(limits, writing);
}

absl::Status InClientsWords(const absl::Status& status,
                            const GenerateSpec& spec) {
  if (!absl::IsInvalidArgument(status)) return status;
  const std::string field =
      IsLimited(spec.constraint) ? spec.constraint_field : "tools";
  absl::string_view rest = status.message();
  for (const absl::string_view name : kWorkersFields) {
    if (!absl::ConsumePrefix(&rest, name)) continue;
    return WithField(WithMessage(status, absl::StrCat(field, rest)), field);
  }
  return status;
}

}  // namespace lockstep
