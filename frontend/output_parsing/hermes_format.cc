#include "frontend/output_parsing/json_scanner.h"
#include "frontend/output_parsing/tool_call_format.h"

namespace lockstep {
namespace {

constexpr absl::string_view kOpen = "<tool_call>";
constexpr absl::string_view kClose = "</tool_call>";
constexpr absl::string_view kMarks[] = {kOpen};

class HermesFormat : public ToolCallFormat {
 public:
  absl::Span<const absl::string_view> marks() const override { return kMarks; }

  Reading Read(absl::string_view text, Place place) override {
    if (place == Place::kAfterCall) return ReadEnd(text);
    CallHeader call;
    const Scan scan = object_.ReadCall(text, kOpen.size(), &call);
    return Reading::Of(scan, std::move(call));
  }

 private:
  Reading ReadEnd(absl::string_view text) const {
    size_t at = 0;
    Scan scan = object_.ReadEnd(text, &at);
    if (scan == Scan::kWhole) scan = ScanMark(text, &at, kClose);
    return scan == Scan::kMore ? Reading::MoreAfter(text.size())
                               : Reading::EndAt(at);
  }

  CallObjectReader object_{OtherMembers::kIgnored};
};

}  // namespace

std::unique_ptr<ToolCallFormat> MakeHermesFormat() {
  return std::make_unique<HermesFormat>();
}

}  // namespace lockstep
