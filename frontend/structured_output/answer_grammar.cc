#include "frontend/structured_output/answer_grammar.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>

#include <string>

#include "common/strict_json.h"
#include "frontend/structured_output/lark_pieces.h"

namespace lockstep {
namespace {

// ANY can be empty, TEXT can not.
constexpr char kTerminals[] =
    "ANY: /(?s:.*)/\n"
    "TEXT: /(?s:.+)/\n"
    "SPACE: /[ \\t\\r\\n]{1,16}/\n";

bool IsLimited(const Constraint& constraint) {
  return !std::holds_alternative<std::monostate>(constraint);
}

// What follows "said:". REQUIRES: it is limited.
std::string LarkConstraint(const Constraint& constraint) {
  if (const auto* schema = std::get_if<JsonSchema>(&constraint)) {
    return LarkJson(ParseOrderedJson(schema->text, "schema").value());
  }
  if (const auto* regex = std::get_if<Regex>(&constraint)) {
    return LarkRegex(regex->text);
  }
  if (const auto* one_of = std::get_if<OneOf>(&constraint)) {
    return absl::StrJoin(one_of->texts, " | ",
                         [](std::string* out, const std::string& text) {
                           absl::StrAppend(out, LarkText(text));
                         });
  }
  return absl::StrCat("%lark {\n", std::get<LarkGrammar>(constraint).text,
                      "\n}");
}

// Text up to a mark, with it, as a rule of this name.
std::string UpTo(absl::string_view rule, absl::string_view mark,
                 const MarkIds& ids) {
  const std::string lark = LarkMark(mark, ids);
  return ids.contains(mark) ? absl::StrCat(rule, ": TEXT? ", lark, "\n")
                            : absl::StrCat(rule, "[lazy]: ANY ", lark, "\n");
}

// "thoughts", behind which the answer begins.
std::string ThoughtRules(const AnswerWriting& writing) {
  const ReasoningMarks marks = MarksOf(writing.reasoning);
  const std::string open = LarkMark(marks.open, writing.calls.marks);
  return absl::StrCat(
      UpTo("thought", marks.close, writing.calls.marks),
      writing.starts_in_reasoning
          ? absl::StrCat("thoughts: (", open, ")? thought SPACE?\n")
          : absl::StrCat("thoughts: (", open, " thought SPACE?)?\n"));
}

// Words in which no call is hidden, or calls among them.
std::string FreeRules(const CallRules& calls, const MarkIds& ids,
                      bool several) {
  const char* times = several ? "*" : "?";
  if (calls.lead.empty()) {
    return absl::StrCat("answer: calls | OTHER?\n", "OTHER: /[^\\",
                        std::string(1, calls.bare_start),
                        " \\t\\r\\n](?s:.*)/\n");
  }
  return absl::StrCat(UpTo("lead", calls.lead, ids), "answer: (lead calls)",
                      times, " TEXT?\n");
}

std::string AnswerRules(const AnswerLimits& limits,
                        const AnswerWriting& writing) {
  const bool is_limited = IsLimited(limits.constraint);
  const std::string said =
      is_limited
          ? absl::StrCat("said: ", LarkConstraint(limits.constraint), "\n")
          : "";
  if (limits.tools.empty()) return absl::StrCat("answer: said\n", said);
  const MarkIds& ids = writing.calls.marks;
  const CallRules calls =
      MakeCallRules(writing.calls, limits.tools, limits.several_calls);
  const std::string all =
      calls.lead.empty() ? "calls"
                         : absl::StrCat(LarkMark(calls.lead, ids), " calls");
  if (limits.must_call) {
    return absl::StrCat("answer: ", all, "\n", calls.rules);
  }
  if (is_limited) {
    return absl::StrCat("answer: ", all, " | said\n", calls.rules, said);
  }
  return absl::StrCat(FreeRules(calls, ids, limits.several_calls),
                      calls.rules);
}

// gpt-oss writes messages, each with a header: see harmony_parser.h.
std::string HarmonyRules(const AnswerLimits& limits, const MarkIds& ids) {
  const auto mark = [&](absl::string_view text) { return LarkMark(text, ids); };
  const std::string channel = mark("<|channel|>");
  const std::string message = mark("<|message|>");
  std::vector<std::string> last;
  for (const CallableTool& tool : limits.tools) {
    last.push_back(absl::StrCat(
        channel, " ",
        LarkText(absl::StrCat("commentary to=functions.", tool.name, " ")), " ",
        mark("<|constrain|>"), " \"json\" ", message, " ",
        LarkArguments(tool)));
  }
  if (!limits.must_call) {
    last.push_back(absl::StrCat(channel, " \"final\" ", message, " said"));
  }
  return absl::StrCat(
      "start: thought* (", absl::StrJoin(last, " | "), ")\n", "thought: ",
      channel, " \"analysis\" ", message, " TEXT? ",
      mark("<|end|>"), " ", mark("<|start|>"), " \"assistant\"\n",
      limits.must_call ? ""
      : IsLimited(limits.constraint)
          ? absl::StrCat("said: ", LarkConstraint(limits.constraint), "\n")
          : "said: TEXT?\n");
}

v1::Grammar Alone(const Constraint& constraint) {
  v1::Grammar grammar;
  if (const auto* schema = std::get_if<JsonSchema>(&constraint)) {
    grammar.set_json_schema(schema->text);
  } else if (const auto* regex = std::get_if<Regex>(&constraint)) {
    grammar.set_regex(regex->text);
  } else if (const auto* lark = std::get_if<LarkGrammar>(&constraint)) {
    grammar.set_lark(lark->text);
  } else {
    grammar.set_lark(absl::StrCat("start: ", LarkConstraint(constraint)));
  }
  return grammar;
}

}  // namespace

std::optional<v1::Grammar> MakeAnswerGrammar(const AnswerLimits& limits,
                                             const AnswerWriting& writing) {
  if (limits.tools.empty() && !IsLimited(limits.constraint)) {
    return std::nullopt;
  }
  v1::Grammar grammar;
  if (writing.reasoning == ReasoningFormat::kHarmony) {
    grammar.set_lark(absl::StrCat(HarmonyRules(limits, writing.calls.marks),
                                  kTerminals));
    return grammar;
  }
  const bool thinks = writing.reasoning != ReasoningFormat::kNone;
  if (!thinks && limits.tools.empty()) return Alone(limits.constraint);
  grammar.set_lark(absl::StrCat(
      thinks ? absl::StrCat("start: thoughts answer\n", ThoughtRules(writing))
             : "start: answer\n",
      AnswerRules(limits, writing), kTerminals));
  return grammar;
}

}  // namespace lockstep
