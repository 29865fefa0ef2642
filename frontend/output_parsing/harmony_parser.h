#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>

#include "frontend/output_parsing/json_scanner.h"
#include "frontend/output_parsing/output_delta.h"
#include "frontend/output_parsing/output_parser.h"
#include "frontend/output_parsing/tool_call_parser.h"

namespace lockstep {

// The messages of gpt-oss ("OpenAI harmony response format", "Receiving
// messages"): each has a header, <|channel|>CHANNEL to=RECIPIENT<|message|>,
// with <|start|>assistant before all but the first, which the prompt begins.
//
//   channel analysis           reasoning
//   recipient functions.NAME   a call, its text the arguments
//   all else                   content, so that nothing is lost
//
// Several messages of one kind are lines of their own. A header that is cut off
// is left out; an answer without a header, or with one of more than
// kMaxHeaderBytes, is content.
class HarmonyParser : public OutputParser {
 public:
  static constexpr size_t kMaxHeaderBytes = 1024;

  // Without tools, calls are content.
  HarmonyParser(bool has_tools, ToolCallOptions options);

  void Add(absl::string_view text, OutputDelta* out) override;
  void Finish(OutputDelta* out) override;
  bool is_in_reasoning() const override { return kind_ == Kind::kReasoning; }
  uint32_t num_begun_calls() const override { return calls_.num_begun(); }
  uint32_t num_whole_calls() const override { return calls_.num_whole(); }

 private:
  // What is being read: a header, or a message of some kind.
  enum class Kind { kHeader, kReasoning, kContent, kCall };

  // Each decides what it can of held_; false where it needs more.
  bool Step(OutputDelta* out);
  bool StepHeader(OutputDelta* out);
  bool StepMessage(OutputDelta* out);

  void BeginMessage(absl::string_view header, OutputDelta* out);
  void AddToMessage(absl::string_view text, OutputDelta* out);
  void AddArguments(absl::string_view text, OutputDelta* out);
  void EndMessage(OutputDelta* out);
  void AddLine(absl::string_view text, bool* has_lines, std::string* to);

  const bool has_tools_;
  const bool several_;
  ToolCallWriter calls_;

  Kind kind_ = Kind::kHeader;
  std::string held_;         // undecided
  bool is_at_start_ = true;  // of the message
  bool has_reasoning_ = false;
  bool has_content_ = false;
  JsonScanner arguments_;
};

}  // namespace lockstep
