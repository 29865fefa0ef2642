#include "frontend/output_parsing/tool_call_parser.h"

#include <algorithm>
#include <utility>

#include "frontend/output_parsing/marks.h"

namespace lockstep {

void ToolCallWriter::Begin(std::string name, std::string id, OutputDelta* out) {
  if (id.empty()) id = make_id_();
  out->tool_calls.push_back({num_begun_++, std::move(id), std::move(name)});
}

void ToolCallWriter::AddArguments(absl::string_view arguments,
                                  OutputDelta* out) {
  if (arguments.empty()) return;
  const uint32_t index = num_begun_ - 1;
  if (out->tool_calls.empty() || out->tool_calls.back().index != index) {
    out->tool_calls.push_back({index});
  }
  out->tool_calls.back().arguments.append(arguments.data(), arguments.size());
}

ToolCallParser::ToolCallParser(std::unique_ptr<ToolCallFormat> format,
                               ToolCallOptions options)
    : format_(std::move(format)),
      options_(std::move(options)),
      writer_(options_.make_id) {}

void ToolCallParser::Add(absl::string_view text, OutputDelta* out) {
  // Never more than what tells that it is too much, so that the cut makes no
  // difference to that either.
  while (!text.empty()) {
    const absl::string_view part =
        text.substr(0, kMaxHeldBytes + 1 - held_.size());
    held_.append(part.data(), part.size());
    text.remove_prefix(part.size());
    while (!held_.empty() && Step(out)) continue;
  }
}

void ToolCallParser::Finish(OutputDelta* out) {
  if (state_ == State::kAfterCall) {
    // What came of the marks that end the call goes with it.
    const Reading reading = format_->Read(held_, Place::kAfterCall);
    held_.erase(0, std::min(held_.size(), reading.call.size));
  }
  ShowHeld(held_.size(), out);
}

bool ToolCallParser::Step(OutputDelta* out) {
  if (!options_.several && num_whole() > 0) {
    held_.clear();
    return false;
  }
  switch (state_) {
    case State::kStart:
      return StepStart();
    case State::kContent:
      return StepContent(out);
    case State::kArguments:
      return StepArguments(out);
    default:
      return StepCall(out);
  }
}

bool ToolCallParser::StepStart() {
  const size_t begin = SkipSpace(held_, 0);
  if (begin > kMaxSpaceBytes) {
    state_ = State::kContent;
    return true;
  }
  if (begin == held_.size()) return false;
  const char bare = format_->bare_start();
  const bool is_bare = bare != '\0' && held_[begin] == bare;
  space_ = begin;
  are_bare_ = is_bare;
  state_ = is_bare ? State::kBare : State::kContent;
  return true;
}

bool ToolCallParser::StepContent(OutputDelta* out) {
  if (skips_space_) {
    held_.erase(0, SkipSpace(held_, 0));
    if (held_.empty()) return false;
  }
  const MarkMatch match = FindMark(held_, format_->marks());
  const bool is_found = match.at != absl::string_view::npos;
  const size_t end = is_found ? SpaceBefore(held_, match.at)
                              : UndecidedFrom(held_, format_->marks());
  if (end > 0) skips_space_ = false;
  ShowHeld(end, out);
  if (!is_found) return false;
  space_ = match.at - end;
  are_bare_ = false;
  state_ = State::kMark;
  return true;
}

bool ToolCallParser::StepCall(OutputDelta* out) {
  const bool is_after_call = state_ == State::kAfterCall;
  Reading reading = Read();
  switch (reading.kind) {
    case Reading::Kind::kMore:
      if (held_.size() <= kMaxHeldBytes) return false;
      break;
    case Reading::Kind::kCall:
      if (are_bare_ && !IsOffered(reading.call.name)) break;
      BeginCall(std::move(reading.call), out);
      return true;
    case Reading::Kind::kEnd:
      EndCalls(reading.call.size);
      return true;
    case Reading::Kind::kNone:
      break;
  }
  if (is_after_call) {
    EndCalls(0);
  } else {
    RefuseCall(out);
  }
  return true;
}

bool ToolCallParser::StepArguments(OutputDelta* out) {
  const size_t size = arguments_.Add(held_);
  writer_.AddArguments(absl::string_view(held_).substr(0, size), out);
  held_.erase(0, size);
  if (arguments_.state() == Scan::kMore) return false;
  if (arguments_.state() == Scan::kWhole) {
    EndCall();
  } else {
    state_ = State::kContent;
  }
  return true;
}

ToolCallFormat::Reading ToolCallParser::Read() {
  if (state_ == State::kAfterCall) {
    return format_->Read(held_, Place::kAfterCall);
  }
  return format_->Read(absl::string_view(held_).substr(space_),
                       state_ == State::kBare ? Place::kBare : Place::kMark);
}

bool ToolCallParser::IsOffered(const std::string& name) const {
  return std::find(options_.names.begin(), options_.names.end(), name) !=
         options_.names.end();
}

void ToolCallParser::BeginCall(CallHeader call, OutputDelta* out) {
  const size_t before = state_ == State::kAfterCall ? 0 : space_;
  held_.erase(0, before + call.size);
  writer_.Begin(std::move(call.name), std::move(call.id), out);
  if (call.arguments.has_value()) {
    writer_.AddArguments(*call.arguments, out);
    return EndCall();
  }
  arguments_ = JsonScanner();
  state_ = State::kArguments;
}

void ToolCallParser::EndCall() {
  writer_.End();
  state_ = State::kAfterCall;
}

// What looked like a call is content, and so is what follows it.
void ToolCallParser::RefuseCall(OutputDelta* out) {
  const size_t mark = state_ == State::kBare
                          ? 1
                          : FindMark(held_, format_->marks()).mark.size();
  ShowHeld(space_ + mark, out);
  skips_space_ = false;
  state_ = State::kContent;
}

void ToolCallParser::EndCalls(size_t size) {
  held_.erase(0, size);
  skips_space_ = true;
  state_ = State::kContent;
}

void ToolCallParser::ShowHeld(size_t size, OutputDelta* out) {
  out->content.append(held_, 0, size);
  held_.erase(0, size);
}

}  // namespace lockstep
