#include <absl/strings/ascii.h>

#include "frontend/output_parsing/json_scanner.h"
#include "frontend/output_parsing/marks.h"
#include "frontend/output_parsing/tool_call_format.h"

namespace lockstep {
namespace {

constexpr absl::string_view kOpen = "[TOOL_CALLS]";
constexpr absl::string_view kCallId = "[CALL_ID]";
constexpr absl::string_view kArguments = "[ARGS]";
constexpr absl::string_view kMarks[] = {kOpen};

bool IsNameCharacter(char c) {
  return absl::ascii_isalnum(c) || c == '_' || c == '-' || c == '.';
}

absl::string_view ScanName(absl::string_view text, size_t* at) {
  const size_t begin = SkipSpace(text, *at);
  size_t end = begin;
  while (end < text.size() && IsNameCharacter(text[end])) ++end;
  *at = end;
  return text.substr(begin, end - begin);
}

class MistralFormat : public ToolCallFormat {
 public:
  absl::Span<const absl::string_view> marks() const override { return kMarks; }

  Reading Read(absl::string_view text, Place place) override {
    if (place == Place::kAfterCall) return ReadNext(text);
    const size_t at = SkipSpace(text, kOpen.size());
    if (at == text.size()) return {Reading::Kind::kMore};
    in_list_ = text[at] == '[';
    is_object_ = in_list_ || text[at] == '{';
    if (!is_object_) return ReadNamed(text, at);
    return ReadObject(text, in_list_ ? at + 1 : at);
  }

 private:
  Reading ReadObject(absl::string_view text, size_t at) {
    CallHeader call;
    const Scan scan = object_.ReadCall(text, at, &call);
    return Reading::Of(scan, std::move(call));
  }

  Reading ReadNamed(absl::string_view text, size_t at) {
    CallHeader call;
    const Scan scan = ScanNamed(text, at, &call);
    return Reading::Of(scan, std::move(call));
  }

  static Scan ScanNamed(absl::string_view text, size_t at, CallHeader* call) {
    call->name = std::string(ScanName(text, &at));
    if (call->name.empty()) return Scan::kBroken;
    const Scan id = ScanMark(text, &at, kCallId);
    if (id == Scan::kMore) return Scan::kMore;
    if (id == Scan::kWhole) call->id = std::string(ScanName(text, &at));
    const Scan arguments = ScanMark(text, &at, kArguments);
    if (arguments == Scan::kMore) return Scan::kMore;
    const Scan object = ScanMark(text, &at, "{");
    call->size = at - 1;
    return object;
  }

  // A call that is not in a list has a mark of its own.
  Reading ReadNext(absl::string_view text) {
    size_t end = 0;
    if (is_object_) {
      const Scan scan = object_.ReadEnd(text, &end);
      if (scan == Scan::kMore) return Reading::MoreAfter(text.size());
      if (scan == Scan::kBroken) return Reading::EndAt(end);
    }
    if (!in_list_) return Reading::EndAt(end);
    const size_t symbol = SkipSpace(text, end);
    if (symbol == text.size()) return Reading::MoreAfter(text.size());
    if (text[symbol] == ']') return Reading::EndAt(symbol + 1);
    if (text[symbol] != ',') return Reading::EndAt(end);
    return Reading::AfterCall(ReadObject(text, symbol + 1), end);
  }

  CallObjectReader object_{OtherMembers::kIgnored};
  bool in_list_ = false;
  bool is_object_ = false;
};

}  // namespace

std::unique_ptr<ToolCallFormat> MakeMistralFormat() {
  return std::make_unique<MistralFormat>();
}

}  // namespace lockstep
