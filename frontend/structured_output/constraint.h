#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>
#include <variant>
#include <vector>

namespace lockstep {

// What an answer must be, as its client said it.
struct JsonSchema {
  std::string text;  // JSON, with its keys in their order: so they are written
};
struct Regex {
  std::string text;
};
struct OneOf {
  std::vector<std::string> texts;
};
struct LarkGrammar {
  std::string text;
};
using Constraint =
    std::variant<std::monostate, JsonSchema, Regex, OneOf, LarkGrammar>;

inline constexpr size_t kMaxChoiceTexts = 1024;
inline constexpr char kAnyObject[] = R"({"type":"object"})";

// From what clients write. INVALID_ARGUMENT names `field`. What the grammar
// itself says is the worker's to judge, which compiles it.
absl::StatusOr<Constraint> ReadJsonSchema(absl::string_view field,
                                          const std::string& text);
absl::StatusOr<Constraint> ReadRegex(absl::string_view field,
                                     const std::string& text);
absl::StatusOr<Constraint> ReadChoices(absl::string_view field,
                                       const std::vector<std::string>& texts);
// In Lark's syntax or, where it has rules with "::=", in GBNF's.
absl::StatusOr<Constraint> ReadGrammar(absl::string_view field,
                                       const std::string& text);

}  // namespace lockstep
