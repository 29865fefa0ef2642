#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontend/output_parsing/json_scanner.h"
#include "frontend/output_parsing/output_delta.h"
#include "frontend/output_parsing/tool_call_format.h"

namespace lockstep {

struct ToolCallOptions {
  // The tools that were offered. A call without a mark must be of one of them.
  std::vector<std::string> names;
  // False: what follows the first call that is whole is dropped.
  bool several = true;
  // Makes the id of a call to which the model gave none.
  std::function<std::string()> make_id;
};

// Numbers the calls of one choice, and adds parts of them to deltas.
class ToolCallWriter {
 public:
  explicit ToolCallWriter(std::function<std::string()> make_id)
      : make_id_(std::move(make_id)) {}

  // `id` may be empty.
  void Begin(std::string name, std::string id, OutputDelta* out);
  void AddArguments(absl::string_view arguments, OutputDelta* out);
  void End() { ++num_whole_; }

  uint32_t num_begun() const { return num_begun_; }
  uint32_t num_whole() const { return num_whole_; }

 private:
  const std::function<std::string()> make_id_;
  uint32_t num_begun_ = 0;
  uint32_t num_whole_ = 0;
};

// Splits the text of one choice into content and tool calls, as it comes.
//
//   ToolCallParser parser(MakeHermesFormat(), options);
//   parser.Add(text, &delta);  // delta.content, delta.tool_calls
//   …
//   parser.Finish(&delta);
//
// A call begins once its name is known; from there on its arguments come as the
// model writes them. What looks like a call and is none, is cut off before its
// arguments or has more than kMaxHeldBytes before them, is content, with its
// marks: no text is lost but the marks of calls and the white space around
// them. Arguments that break off, as their brackets do not match, leave a call
// that is not whole, and what follows is content. However the text is cut, the
// deltas concatenate to the same. At most kMaxHeldBytes are held back. Not
// thread-safe.
class ToolCallParser {
 public:
  ToolCallParser(std::unique_ptr<ToolCallFormat> format,
                 ToolCallOptions options);

  void Add(absl::string_view text, OutputDelta* out);

  // The text ends here; no Add after it.
  void Finish(OutputDelta* out);

  // Calls that have begun, and those of them whose arguments have ended.
  uint32_t num_begun() const { return writer_.num_begun(); }
  uint32_t num_whole() const { return writer_.num_whole(); }

 private:
  enum class State { kStart, kContent, kBare, kMark, kArguments, kAfterCall };
  using Place = ToolCallFormat::Place;
  using Reading = ToolCallFormat::Reading;

  // Each decides what it can of held_; false where it needs more.
  bool Step(OutputDelta* out);
  bool StepStart();
  bool StepContent(OutputDelta* out);
  bool StepCall(OutputDelta* out);
  bool StepArguments(OutputDelta* out);

  // Of held_, behind the white space before the mark.
  Reading Read();
  bool IsOffered(const std::string& name) const;
  void BeginCall(CallHeader call, OutputDelta* out);
  void EndCall();
  void RefuseCall(OutputDelta* out);
  void EndCalls(size_t size);
  void ShowHeld(size_t size, OutputDelta* out);

  const std::unique_ptr<ToolCallFormat> format_;
  const ToolCallOptions options_;
  ToolCallWriter writer_;

  State state_ = State::kStart;
  std::string held_;          // undecided
  size_t space_ = 0;          // before the mark in held_, in kBare and kMark
  bool skips_space_ = false;  // in kContent, behind calls
  bool are_bare_ = false;     // the calls, as their first has no mark
  JsonScanner arguments_;
};

}  // namespace lockstep
