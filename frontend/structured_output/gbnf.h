#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>

namespace lockstep {

// GBNF, the grammars of llama.cpp (its grammars/README.md), which XGrammar and
// so vLLM and SGLang call EBNF:
//
//   root ::= "yes" | "no" ws
//   ws   ::= [ \t]*          # a comment
//
// with groups, ., *, +, ?, {m,n}, and the escapes \n \r \t \" \\ \xHH \uHHHH.

// Whether a grammar is of this kind: it has a rule.
bool IsGbnf(absl::string_view text);

// The same grammar as Lark writes it, its `root` the start. INVALID_ARGUMENT
// says what is wrong, and in which line. A pure function, as long as the text;
// groups nest at most 64 deep.
absl::StatusOr<std::string> GbnfToLark(absl::string_view text);

}  // namespace lockstep
