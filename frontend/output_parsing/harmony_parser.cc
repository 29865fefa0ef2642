#include "frontend/output_parsing/harmony_parser.h"

#include <absl/algorithm/container.h>
#include <absl/strings/match.h>
#include <absl/strings/strip.h>

#include <utility>

#include "frontend/output_parsing/marks.h"

namespace lockstep {
namespace {

constexpr absl::string_view kMessage = "<|message|>";
constexpr absl::string_view kChannel = "<|channel|>";
constexpr absl::string_view kRecipient = "to=";
constexpr absl::string_view kFunctions = "functions.";
constexpr absl::string_view kHeaderStarts[] = {"<|start|>", kChannel, kMessage,
                                               kRecipient};
// The first three end a message, the others begin the next one.
constexpr absl::string_view kMessageEnds[] = {
    "<|end|>", "<|call|>", "<|return|>", "<|start|>", kChannel};
constexpr size_t kFirstOfNextMessage = 3;

// What follows `key` in a header, up to a space or a mark; empty: it has none.
absl::string_view WordAfter(absl::string_view header, absl::string_view key) {
  const size_t at = header.find(key);
  if (at == absl::string_view::npos) return "";
  const absl::string_view rest = header.substr(at + key.size());
  return rest.substr(0, rest.find_first_of(" \n\r\t<"));
}

}  // namespace

HarmonyParser::HarmonyParser(bool has_tools, ToolCallOptions options)
    : has_tools_(has_tools),
      several_(options.several),
      calls_(std::move(options.make_id)) {}

void HarmonyParser::Add(absl::string_view text, OutputDelta* out) {
  held_.append(text.data(), text.size());
  while (!held_.empty() && Step(out)) continue;
}

void HarmonyParser::Finish(OutputDelta* out) {
  if (kind_ == Kind::kHeader) return;
  AddToMessage(held_, out);
  EndMessage(out);
}

bool HarmonyParser::Step(OutputDelta* out) {
  if (!several_ && calls_.num_whole() > 0) {
    held_.clear();
    return false;
  }
  return kind_ == Kind::kHeader ? StepHeader(out) : StepMessage(out);
}

bool HarmonyParser::StepHeader(OutputDelta* out) {
  const absl::string_view text =
      absl::string_view(held_).substr(SkipSpace(held_, 0));
  const bool could_be_header = absl::c_any_of(
      kHeaderStarts,
      [&](absl::string_view start) { return CouldBecome(text, start); });
  const size_t end =
      absl::string_view(held_).substr(0, kMaxHeaderBytes).find(kMessage);
  const bool is_too_long =
      end == absl::string_view::npos && held_.size() >= kMaxHeaderBytes;
  if (!could_be_header) {
    BeginMessage("", out);
    return true;
  }
  if (is_too_long) {
    BeginMessage("", out);
    // With its mark, which would else begin a header again.
    const size_t size =
        held_.size() - text.size() + FindMark(text, kHeaderStarts).mark.size();
    AddToMessage(held_.substr(0, size), out);
    held_.erase(0, size);
    return true;
  }
  if (end == absl::string_view::npos) return false;
  const std::string header = held_.substr(0, end);
  held_.erase(0, end + kMessage.size());
  BeginMessage(header, out);
  return true;
}

bool HarmonyParser::StepMessage(OutputDelta* out) {
  const MarkMatch match = FindMark(held_, kMessageEnds);
  if (match.at == absl::string_view::npos) {
    const size_t end = UndecidedFrom(held_, kMessageEnds);
    AddToMessage(absl::string_view(held_).substr(0, end), out);
    held_.erase(0, end);
    return false;
  }
  AddToMessage(absl::string_view(held_).substr(0, match.at), out);
  EndMessage(out);
  const bool is_next = absl::c_linear_search(
      absl::MakeConstSpan(kMessageEnds).subspan(kFirstOfNextMessage),
      match.mark);
  held_.erase(0, is_next ? match.at : match.at + match.mark.size());
  return true;
}

void HarmonyParser::BeginMessage(absl::string_view header, OutputDelta* out) {
  is_at_start_ = true;
  absl::string_view recipient = WordAfter(header, kRecipient);
  if (has_tools_ && absl::ConsumePrefix(&recipient, kFunctions) &&
      !recipient.empty()) {
    kind_ = Kind::kCall;
    arguments_ = JsonScanner();
    calls_.Begin(std::string(recipient), /*id=*/"", out);
  } else {
    kind_ = WordAfter(header, kChannel) == "analysis" ? Kind::kReasoning
                                                      : Kind::kContent;
  }
}

void HarmonyParser::AddToMessage(absl::string_view text, OutputDelta* out) {
  if (kind_ == Kind::kCall) return AddArguments(text, out);
  if (kind_ == Kind::kReasoning) {
    AddLine(text, &has_reasoning_, &out->reasoning);
  } else {
    AddLine(text, &has_content_, &out->content);
  }
}

void HarmonyParser::AddArguments(absl::string_view text, OutputDelta* out) {
  if (is_at_start_) text.remove_prefix(SkipSpace(text, 0));
  if (text.empty()) return;
  if (arguments_.state() == Scan::kMore) {
    const size_t size = arguments_.Add(text);
    calls_.AddArguments(text.substr(0, size), out);
    is_at_start_ = arguments_.state() != Scan::kMore;  // of what follows them
    if (arguments_.state() == Scan::kWhole) calls_.End();
    text.remove_prefix(size);
    if (is_at_start_) AddArguments(text, out);
    return;
  }
  // What follows the arguments, or breaks them.
  if (several_ || calls_.num_whole() == 0) {
    AddLine(text, &has_content_, &out->content);
  }
}

void HarmonyParser::EndMessage(OutputDelta* out) {
  const bool has_no_arguments =
      kind_ == Kind::kCall && is_at_start_ && arguments_.state() == Scan::kMore;
  if (has_no_arguments) {
    calls_.AddArguments("{}", out);
    calls_.End();
  }
  kind_ = Kind::kHeader;
}

// A message is a line of its own.
void HarmonyParser::AddLine(absl::string_view text, bool* has_lines,
                            std::string* to) {
  if (text.empty()) return;
  if (is_at_start_ && *has_lines) *to += '\n';
  to->append(text.data(), text.size());
  *has_lines = true;
  is_at_start_ = false;
}

}  // namespace lockstep
