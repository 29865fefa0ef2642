#pragma once

#include <absl/strings/string_view.h>

#include <string>

namespace lockstep {

// What a model writes around its reasoning.
struct ReasoningMarks {
  absl::string_view open;
  absl::string_view close;
};

// Parts a choice's text into the reasoning it begins with and the rest.
//
//   ReasoningSplitter splitter({"<think>", "</think>"}, /*starts_open=*/false);
//   splitter.Add(text, &reasoning, &rest);
//   …
//   splitter.Finish(&reasoning, &rest);
//
// Reasoning begins with `open`, after white space at most, or at once where the
// prompt has opened it; it ends with `close`, or with the text. Later marks are
// part of the rest. White space around the marks is left out. However the text
// is cut, the parts concatenate to the same; held back is no more than a mark
// and kMaxSpaceBytes before it. Not thread-safe.
class ReasoningSplitter {
 public:
  // The marks must outlive this. starts_open: the model may open it again.
  ReasoningSplitter(ReasoningMarks marks, bool starts_open);

  void Add(absl::string_view text, std::string* reasoning, std::string* rest);

  // The text ends here; no Add after it.
  void Finish(std::string* reasoning, std::string* rest);

  bool is_in_reasoning() const {
    return state_ == State::kOpened || state_ == State::kReasoning;
  }

 private:
  // kOpened: nothing of the reasoning has come.
  enum class State { kStart, kOpened, kReasoning, kClosed, kRest };

  // Each decides what it can of held_; false where it needs more.
  bool Step(std::string* reasoning, std::string* rest);
  bool StepStart();
  bool StepReasoning(std::string* reasoning);

  const ReasoningMarks marks_;
  State state_;
  std::string held_;
};

}  // namespace lockstep
