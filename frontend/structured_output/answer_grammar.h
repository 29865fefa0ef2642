#pragma once

#include <optional>
#include <vector>

#include "frontend/output_parsing/output_format.h"
#include "frontend/structured_output/constraint.h"
#include "frontend/structured_output/tool_grammar.h"
#include "proto/grammar.pb.h"

namespace lockstep {

// What limits an answer.
struct AnswerLimits {
  // Of what the model says, where it says something.
  Constraint constraint = {};
  // That may be called, as they must be; empty: no call is limited, or none can
  // be made.
  std::vector<CallableTool> tools = {};
  bool must_call = false;
  bool several_calls = true;
};

// How the model writes around it.
struct AnswerWriting {
  // kNone for what is no chat: all of it is said.
  ReasoningFormat reasoning = ReasoningFormat::kNone;
  bool starts_in_reasoning = false;
  CallDialect calls = {};
};

// The grammar of all that the model writes: it thinks as it likes first, where
// it does so, then calls or speaks as it must. None where nothing is limited.
// A pure function.
std::optional<v1::Grammar> MakeAnswerGrammar(const AnswerLimits& limits,
                                             const AnswerWriting& writing);

}  // namespace lockstep
