#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <memory>

#include "frontend/output_parsing/output_delta.h"
#include "frontend/output_parsing/output_format.h"
#include "frontend/output_parsing/tool_call_parser.h"

namespace lockstep {

// Splits the text of one choice of a chat, as it comes, into what the model
// says, what it thinks before and which tools it calls.
//
//   auto parser = MakeOutputParser(format, options);
//   OutputDelta delta;
//   parser->Add(text, &delta);
//   …
//   parser->Finish(&delta);
//
// However the text is cut into pieces, the deltas concatenate to the same. No
// text is lost but the marks of the format and the white space around them. See
// ToolCallParser for calls that are malformed or cut off. Not thread-safe.
class OutputParser {
 public:
  virtual ~OutputParser() = default;

  virtual void Add(absl::string_view text, OutputDelta* out) = 0;

  // The text ends here; no Add after it.
  virtual void Finish(OutputDelta* out) = 0;

  virtual bool is_in_reasoning() const = 0;

  // Calls that have begun, and those of them whose arguments have ended.
  virtual uint32_t num_begun_calls() const = 0;
  virtual uint32_t num_whole_calls() const = 0;
};

struct OutputParserOptions {
  // Whether tools were offered; else nothing is a call.
  bool has_tools = false;
  ToolCallOptions calls = {};
  // See StartsInReasoning.
  bool starts_in_reasoning = false;
};

// Null where the format has nothing to be split.
std::unique_ptr<OutputParser> MakeOutputParser(const OutputFormat& format,
                                               OutputParserOptions options);

}  // namespace lockstep
