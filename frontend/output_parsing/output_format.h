#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>
#include <vector>

#include "frontend/output_parsing/reasoning_splitter.h"

namespace lockstep {

enum class ToolFormat {
  kNone,
  kHermes,
  kLlama3Json,
  kPythonic,
  kMistral,
  kDeepSeek,
  kHarmony,
};

enum class ReasoningFormat {
  kNone,
  kThink,       // <think>…</think>, opened by the prompt or by the model
  kThinkFirst,  // the same, and the model begins with it even where nobody
                // opens it
  kMistral,     // [THINK]…[/THINK]
  kHarmony,
};

// How a model writes what is not meant for the user. What each looks like:
// tool_call_format.h, reasoning_splitter.h, harmony_parser.h.
struct OutputFormat {
  ToolFormat tools = ToolFormat::kNone;
  ReasoningFormat reasoning = ReasoningFormat::kNone;

  std::string ToString() const;  // "tool calls hermes, reasoning think"
};

// "auto, none, hermes, …": what the two flags can be.
std::string ToolFormatNames();
std::string ReasoningFormatNames();

// By name; "auto" goes by the text of the chat template, empty where there is
// none: by the marks that it writes around earlier calls and thoughts. The
// error names the flag, --tool_call_parser or --reasoning_parser.
absl::StatusOr<OutputFormat> ChooseOutputFormat(
    const std::string& tool_call_parser, const std::string& reasoning_parser,
    absl::string_view chat_template);

// All marks of a format: a parser must see these even where special tokens are
// left out of the text.
std::vector<absl::string_view> MarksOf(const OutputFormat& format);

// REQUIRES: the format has such marks.
ReasoningMarks MarksOf(ReasoningFormat format);

// Whether the answer to `prompt`, a rendered chat, begins within reasoning.
bool StartsInReasoning(ReasoningFormat format, absl::string_view prompt);

// Whether a message that is to be continued ends within reasoning.
bool LeavesReasoningOpen(ReasoningFormat format, absl::string_view message);

}  // namespace lockstep
