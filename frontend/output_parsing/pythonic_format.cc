#include <nlohmann/json.hpp>

#include "frontend/output_parsing/json_scanner.h"
#include "frontend/output_parsing/marks.h"
#include "frontend/output_parsing/python_literal.h"
#include "frontend/output_parsing/tool_call_format.h"

namespace lockstep {
namespace {

constexpr absl::string_view kStart = "<|python_start|>";
constexpr absl::string_view kEnd = "<|python_end|>";
constexpr absl::string_view kMarks[] = {kStart};

// name=value, as an entry of a JSON object.
Scan ScanKeyword(absl::string_view text, size_t* at, std::string* json) {
  std::string key;
  Scan scan = ScanPythonName(text, at, &key);
  if (scan == Scan::kWhole) scan = ScanMark(text, at, "=");
  if (scan != Scan::kWhole) return scan;
  *json += nlohmann::json(key).dump() + ": ";
  return ScanPythonLiteral(text, at, json);
}

// f(a=1, b="x"), as a whole: a part of it may still turn out to be none.
Scan ScanCall(absl::string_view text, size_t at, CallHeader* call) {
  Scan scan = ScanPythonName(text, &at, &call->name);
  if (scan == Scan::kWhole) scan = ScanMark(text, &at, "(");
  if (scan != Scan::kWhole) return scan;
  std::string json = "{";
  while (scan == Scan::kWhole) {
    scan = ScanMark(text, &at, ")");
    if (scan != Scan::kBroken) break;
    if (json.size() > 1) {
      scan = ScanMark(text, &at, ",");
      if (scan != Scan::kWhole) return scan;
      json += ", ";
    }
    scan = ScanKeyword(text, &at, &json);
  }
  call->arguments = json + "}";
  call->size = at;
  return scan;
}

class PythonicFormat : public ToolCallFormat {
 public:
  absl::Span<const absl::string_view> marks() const override { return kMarks; }
  char bare_start() const override { return '['; }

  Reading Read(absl::string_view text, Place place) override {
    if (place == Place::kAfterCall) return ReadNext(text);
    size_t at = place == Place::kMark ? kStart.size() : 0;
    const Scan scan = ScanMark(text, &at, "[");
    if (scan != Scan::kWhole) return Reading::Of(scan, {});
    return ReadCall(text, at);
  }

 private:
  static Reading ReadCall(absl::string_view text, size_t at) {
    CallHeader call;
    const Scan scan = ScanCall(text, at, &call);
    return Reading::Of(scan, std::move(call));
  }

  static Reading ReadNext(absl::string_view text) {
    const size_t symbol = SkipSpace(text, 0);
    if (symbol == text.size()) return Reading::MoreAfter(text.size());
    if (text[symbol] == ',') {
      return Reading::AfterCall(ReadCall(text, symbol + 1), 0);
    }
    if (text[symbol] != ']') return Reading::EndAt(0);
    size_t at = symbol + 1;
    return ScanMark(text, &at, kEnd) == Scan::kMore
               ? Reading::MoreAfter(text.size())
               : Reading::EndAt(at);
  }
};

}  // namespace

std::unique_ptr<ToolCallFormat> MakePythonicFormat() {
  return std::make_unique<PythonicFormat>();
}

}  // namespace lockstep
