#include "frontend/structured_output/tool_grammar.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <glog/logging.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "common/strict_json.h"
#include "frontend/structured_output/lark_pieces.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

// A rule "call" with an alternative for each tool, which is what `write` makes
// of it.
template <typename Write>
std::string CallRule(const std::vector<CallableTool>& tools, Write write) {
  return absl::StrCat("call: ",
                      absl::StrJoin(tools, " | ",
                                    [&](std::string* out, const auto& tool) {
                                      out->append(write(tool));
                                    }),
                      "\n");
}

// `one`, or several of it with `separator` between them.
std::string Row(absl::string_view one, absl::string_view separator,
                bool several) {
  return several ? absl::StrCat(one, " (", separator, " ", one, ")*")
                 : std::string(one);
}

// {"name": …, KEY: {…}}
std::string ObjectOf(const CallableTool& tool, absl::string_view key) {
  return absl::StrCat(
      LarkText(absl::StrCat("{\"name\": \"", tool.name, "\", \"", key, "\": ")),
      " ", LarkArguments(tool), " \"}\"");
}

CallRules Hermes(const std::vector<CallableTool>& tools, const MarkIds& marks,
                 bool several) {
  const std::string open = LarkMark("<tool_call>", marks);
  const std::string close = LarkMark("</tool_call>", marks);
  const std::string more = absl::StrCat("(\"\\n\" ", open, " block)*");
  return {.lead = "<tool_call>",
          .rules = absl::StrCat("calls: block ", several ? more : "", "\n",
                                "block: \"\\n\" call \"\\n\" ", close, "\n",
                                CallRule(tools, [](const CallableTool& tool) {
                                  return ObjectOf(tool, "arguments");
                                }))};
}

CallRules Llama3Json(const std::vector<CallableTool>& tools, bool several) {
  return {.bare_start = '{',
          .rules = absl::StrCat("calls: ", Row("call", "\"; \"", several), "\n",
                                CallRule(tools, [](const CallableTool& tool) {
                                  return ObjectOf(tool, "parameters");
                                }))};
}

// Since tokenizer version 11, which has a mark for them, arguments follow a
// name.
CallRules Mistral(const std::vector<CallableTool>& tools, const MarkIds& marks,
                  bool several) {
  constexpr absl::string_view kOpen = "[TOOL_CALLS]";
  if (!marks.contains("[ARGS]")) {
    return {.lead = std::string(kOpen),
            .rules = absl::StrCat("calls: \"[\" ",
                                  Row("call", "\", \"", several), " \"]\"\n",
                                  CallRule(tools, [](const CallableTool& tool) {
                                    return ObjectOf(tool, "arguments");
                                  }))};
  }
  const std::string arguments = LarkMark("[ARGS]", marks);
  return {.lead = std::string(kOpen),
          .rules = absl::StrCat(
              "calls: ", Row("call", LarkMark(kOpen, marks), several), "\n",
              CallRule(tools, [&](const CallableTool& tool) {
                return absl::StrCat(LarkText(tool.name), " ", arguments, " ",
                                    LarkArguments(tool));
              }))};
}

CallRules DeepSeek(const std::vector<CallableTool>& tools,
                   const CallDialect& dialect, bool several) {
  const auto mark = [&](absl::string_view text) {
    return LarkMark(text, dialect.marks);
  };
  const std::string separator = mark("<｜tool▁sep｜>");
  const auto call = [&](const CallableTool& tool) {
    if (!dialect.is_fenced) {
      return absl::StrCat(LarkText(tool.name), " ", separator, " ",
                          LarkArguments(tool));
    }
    return absl::StrCat("\"function\" ", separator, " ",
                        LarkText(tool.name + "\n```json\n"), " ",
                        LarkArguments(tool), " \"\\n```\"");
  };
  return {
      .lead = "<｜tool▁calls▁begin｜>",
      .rules = absl::StrCat(
          "calls: ", Row("block", dialect.is_fenced ? "\"\\n\"" : "", several),
          " ", mark("<｜tool▁calls▁end｜>"), "\n",
          "block: ", mark("<｜tool▁call▁begin｜>"), " call ",
          mark("<｜tool▁call▁end｜>"), "\n", CallRule(tools, call))};
}

Json Parameters(const CallableTool& tool) {
  return ParseOrderedJson(tool.parameters, tool.name).value();
}

// Longer rules than any worker takes, which would only cost memory.
constexpr size_t kMaxRulesBytes = 1 << 20;

// The members of a schema that its properties may refer to.
Json DefinitionsOf(const Json& schema) {
  Json definitions = Json::object();
  for (const char* key : {"$defs", "definitions"}) {
    const auto found = schema.find(key);
    if (found != schema.end()) definitions[key] = *found;
  }
  return definitions;
}

Json PropertySchema(const Json& property, const Json& definitions) {
  Json own = property.is_object() ? property : Json::object();
  own.update(definitions);
  return own;
}

std::set<std::string> RequiredOf(const Json& schema) {
  std::set<std::string> keys;
  const auto required = schema.find("required");
  if (required == schema.end()) return keys;
  for (const Json& key : *required) {
    if (key.is_string()) keys.insert(key.get<std::string>());
  }
  return keys;
}

// name=value, in the order of the schema; those that are not required may be
// left out. Cut where it is too long in any case.
//
//   p0: "a=" … p1 | p1         what follows nothing
//   q0: ", a=" … q1 | q1       what follows an argument
std::string KeywordRules(const std::string& prefix, const Json& schema) {
  const Json properties = schema.value("properties", Json::object());
  const Json definitions = DefinitionsOf(schema);
  const std::set<std::string> required = RequiredOf(schema);
  std::string rules;
  int i = 0;
  for (const auto& [key, property] : properties.items()) {
    if (rules.size() > kMaxRulesBytes) break;
    const std::string value =
        absl::StrCat(" ", LarkJson(PropertySchema(property, definitions)), " ",
                     prefix, "q", i + 1);
    const bool may_miss = required.count(key) == 0;
    const auto rule = [&](absl::string_view name, absl::string_view before) {
      absl::StrAppend(&rules, prefix, name, i, ": ",
                      LarkText(absl::StrCat(before, key, "=")), value);
      if (may_miss) absl::StrAppend(&rules, " | ", prefix, name, i + 1);
      rules += "\n";
    };
    rule("p", "");
    rule("q", ", ");
    ++i;
  }
  absl::StrAppend(&rules, prefix, "p", i, ": \"\"\n", prefix, "q", i,
                  ": \"\"\n");
  return rules;
}

CallRules Pythonic(const std::vector<CallableTool>& tools, bool several) {
  std::string rules =
      absl::StrCat("calls: \"[\" ", Row("call", "\", \"", several), " \"]\"\n");
  int i = 0;
  std::vector<std::string> calls;
  for (const CallableTool& tool : tools) {
    const std::string prefix = absl::StrCat("f", i++);
    const Json schema =
        tool.parameters.empty() ? Json::object() : Parameters(tool);
    absl::StrAppend(&rules, KeywordRules(prefix, schema));
    calls.push_back(
        absl::StrCat(LarkText(tool.name + "("), " ", prefix, "p0 ", "\")\""));
  }
  return {.bare_start = '[',
          .rules =
              absl::StrCat(rules, "call: ", absl::StrJoin(calls, " | "), "\n")};
}

}  // namespace

std::string LarkMark(absl::string_view mark, const MarkIds& ids) {
  const auto id = ids.find(mark);
  return id == ids.end() ? LarkText(mark)
                         : absl::StrCat("<[", id->second, "]>");
}

std::string LarkArguments(const CallableTool& tool) {
  Json schema = tool.parameters.empty() ? Json{{"properties", Json::object()},
                                               {"additionalProperties", false}}
                                        : Parameters(tool);
  if (!schema.contains("type")) schema["type"] = "object";
  return LarkJson(std::move(schema));
}

CallRules MakeCallRules(const CallDialect& dialect,
                        const std::vector<CallableTool>& tools, bool several) {
  switch (dialect.format) {
    case ToolFormat::kHermes:
      return Hermes(tools, dialect.marks, several);
    case ToolFormat::kLlama3Json:
      return Llama3Json(tools, several);
    case ToolFormat::kPythonic:
      return Pythonic(tools, several);
    case ToolFormat::kMistral:
      return Mistral(tools, dialect.marks, several);
    case ToolFormat::kDeepSeek:
      return DeepSeek(tools, dialect, several);
    case ToolFormat::kNone:
    case ToolFormat::kHarmony:
      break;
  }
  LOG(FATAL) << "a format without rules";
}

}  // namespace lockstep
