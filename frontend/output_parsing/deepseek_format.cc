#include <absl/strings/ascii.h>

#include "frontend/output_parsing/json_scanner.h"
#include "frontend/output_parsing/marks.h"
#include "frontend/output_parsing/tool_call_format.h"

namespace lockstep {
namespace {

constexpr absl::string_view kCallsBegin = "<｜tool▁calls▁begin｜>";
constexpr absl::string_view kCallsEnd = "<｜tool▁calls▁end｜>";
constexpr absl::string_view kCallBegin = "<｜tool▁call▁begin｜>";
constexpr absl::string_view kCallEnd = "<｜tool▁call▁end｜>";
constexpr absl::string_view kSeparator = "<｜tool▁sep｜>";
constexpr absl::string_view kFence = "```";
constexpr absl::string_view kMarks[] = {kCallsBegin, kCallBegin};

// Up to a mark, without the white space around it.
Scan ScanUpTo(absl::string_view text, size_t* at, absl::string_view mark,
              std::string* words) {
  const size_t end = text.find(mark, *at);
  if (end == absl::string_view::npos) return Scan::kMore;
  *words = std::string(absl::StripAsciiWhitespace(text.substr(*at, end - *at)));
  *at = end + mark.size();
  return words->empty() ? Scan::kBroken : Scan::kWhole;
}

class DeepSeekFormat : public ToolCallFormat {
 public:
  absl::Span<const absl::string_view> marks() const override { return kMarks; }

  Reading Read(absl::string_view text, Place place) override {
    if (place == Place::kAfterCall) return ReadNext(text);
    size_t at = 0;
    ScanMark(text, &at, kCallsBegin);  // or it begins with the call's
    return ReadCall(text, at);
  }

 private:
  Reading ReadCall(absl::string_view text, size_t at) {
    CallHeader call;
    const Scan scan = ScanCall(text, at, &call);
    return Reading::Of(scan, std::move(call));
  }

  Scan ScanCall(absl::string_view text, size_t at, CallHeader* call) {
    Scan scan = ScanMark(text, &at, kCallBegin);
    if (scan == Scan::kWhole) {
      scan = ScanUpTo(text, &at, kSeparator, &call->name);
    }
    if (scan != Scan::kWhole) return scan;
    const size_t next = SkipSpace(text, at);
    if (next == text.size()) return Scan::kMore;
    const bool is_fenced = text[next] != '{';
    // What came before was the type.
    if (is_fenced) scan = ScanUpTo(text, &at, "\n", &call->name);
    if (is_fenced && scan == Scan::kWhole)
      scan = ScanMark(text, &at, "```json");
    if (scan == Scan::kWhole) scan = ScanMark(text, &at, "{");
    if (scan != Scan::kWhole) return scan;
    is_fenced_ = is_fenced;
    call->size = at - 1;
    return Scan::kWhole;
  }

  Reading ReadNext(absl::string_view text) {
    size_t at = 0;
    Scan scan = is_fenced_ ? ScanMark(text, &at, kFence) : Scan::kWhole;
    if (scan == Scan::kWhole) scan = ScanMark(text, &at, kCallEnd);
    if (scan == Scan::kMore) return Reading::MoreAfter(text.size());
    if (scan == Scan::kBroken) return Reading::EndAt(at);
    const size_t end = at;
    scan = ScanMark(text, &at, kCallsEnd);
    if (scan == Scan::kWhole) return Reading::EndAt(at);
    // The next call's mark may begin as this one does.
    if (scan == Scan::kMore) return Reading::MoreAfter(text.size());
    return Reading::AfterCall(ReadCall(text, end), end);
  }

  bool is_fenced_ = false;  // the call that was read last
};

}  // namespace

std::unique_ptr<ToolCallFormat> MakeDeepSeekFormat() {
  return std::make_unique<DeepSeekFormat>();
}

}  // namespace lockstep
