#include "frontend/output_parsing/json_scanner.h"
#include "frontend/output_parsing/tool_call_format.h"

namespace lockstep {
namespace {

constexpr absl::string_view kTag = "<|python_tag|>";
constexpr absl::string_view kMarks[] = {kTag};

class Llama3JsonFormat : public ToolCallFormat {
 public:
  absl::Span<const absl::string_view> marks() const override { return kMarks; }
  char bare_start() const override { return '{'; }

  Reading Read(absl::string_view text, Place place) override {
    if (place == Place::kAfterCall) return ReadNext(text);
    return ReadObject(text, place == Place::kMark ? kTag.size() : 0);
  }

 private:
  Reading ReadObject(absl::string_view text, size_t at) {
    CallHeader call;
    const Scan scan = object_.ReadCall(text, at, &call);
    return Reading::Of(scan, std::move(call));
  }

  Reading ReadNext(absl::string_view text) {
    size_t end = 0;
    Scan scan = object_.ReadEnd(text, &end);
    size_t next = end;
    if (scan == Scan::kWhole) scan = ScanMark(text, &next, ";");
    if (scan == Scan::kMore) return Reading::MoreAfter(text.size());
    if (scan == Scan::kBroken) return Reading::EndAt(end);
    return Reading::AfterCall(ReadObject(text, next), end);
  }

  // An answer that is JSON is not a call for that.
  CallObjectReader object_{OtherMembers::kBreakIt};
};

}  // namespace

std::unique_ptr<ToolCallFormat> MakeLlama3JsonFormat() {
  return std::make_unique<Llama3JsonFormat>();
}

}  // namespace lockstep
