#include "frontend/output_parsing/reasoning_splitter.h"

#include <absl/strings/match.h>

#include <utility>

#include "frontend/output_parsing/marks.h"

namespace lockstep {

ReasoningSplitter::ReasoningSplitter(ReasoningMarks marks, bool starts_open)
    : marks_(marks), state_(starts_open ? State::kOpened : State::kStart) {}

void ReasoningSplitter::Add(absl::string_view text, std::string* reasoning,
                            std::string* rest) {
  held_.append(text.data(), text.size());
  while (!held_.empty() && Step(reasoning, rest)) continue;
}

void ReasoningSplitter::Finish(std::string* reasoning, std::string* rest) {
  *(is_in_reasoning() ? reasoning : rest) += std::exchange(held_, "");
}

bool ReasoningSplitter::Step(std::string* reasoning, std::string* rest) {
  switch (state_) {
    case State::kStart:
    case State::kOpened:
      return StepStart();
    case State::kReasoning:
      return StepReasoning(reasoning);
    case State::kClosed:
      held_.erase(0, SkipSpace(held_, 0));
      if (!held_.empty()) state_ = State::kRest;
      return !held_.empty();
    case State::kRest:
      *rest += std::exchange(held_, "");
      return false;
  }
  return false;
}

bool ReasoningSplitter::StepStart() {
  const bool is_opened = state_ == State::kOpened;
  if (is_opened) held_.erase(0, SkipSpace(held_, 0));
  const size_t begin = SkipSpace(held_, 0);
  const absl::string_view text = absl::string_view(held_).substr(begin);
  if (begin <= kMaxSpaceBytes) {
    if (absl::StartsWith(text, marks_.open)) {
      held_.erase(0, begin + marks_.open.size());
      state_ = State::kOpened;
      return true;
    }
    if (absl::StartsWith(marks_.open, text)) return false;
  }
  state_ = is_opened ? State::kReasoning : State::kRest;
  return true;
}

bool ReasoningSplitter::StepReasoning(std::string* reasoning) {
  const absl::string_view close[] = {marks_.close};
  const MarkMatch match = FindMark(held_, close);
  const bool is_found = match.at != absl::string_view::npos;
  const size_t end =
      is_found ? SpaceBefore(held_, match.at) : UndecidedFrom(held_, close);
  reasoning->append(held_, 0, end);
  held_.erase(0, is_found ? match.at + match.mark.size() : end);
  if (is_found) state_ = State::kClosed;
  return is_found;
}

}  // namespace lockstep
