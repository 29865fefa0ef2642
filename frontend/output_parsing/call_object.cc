#include "frontend/output_parsing/call_object.h"

#include "frontend/output_parsing/marks.h"

namespace lockstep {
namespace {

constexpr char kNoArguments[] = "{}";

// Arguments that are not the object that is about to come: known as a whole
// before their name is, or in another shape.
Scan ScanArguments(absl::string_view text, size_t* at, CallHeader* call) {
  const size_t begin = SkipSpace(text, *at);
  if (begin == text.size()) return Scan::kMore;
  if (text[begin] == '"') {  // the object's text, as a string
    std::string arguments;
    const Scan scan = ScanString(text, at, &arguments);
    if (scan == Scan::kWhole) call->arguments = std::move(arguments);
    return scan;
  }
  const Scan scan = ScanValue(text, at);
  if (scan != Scan::kWhole) return scan;
  const absl::string_view value = text.substr(begin, *at - begin);
  if (value != "null" && value.front() != '{') return Scan::kBroken;
  call->arguments = std::string(value == "null" ? kNoArguments : value);
  return Scan::kWhole;
}

// The comma or bracket behind a member.
Scan ScanNext(absl::string_view text, size_t* at, char* symbol) {
  const size_t begin = SkipSpace(text, *at);
  if (begin == text.size()) return Scan::kMore;
  *symbol = text[begin];
  *at = begin + 1;
  return Scan::kWhole;
}

// A key and its colon.
Scan ScanKey(absl::string_view text, size_t* at, std::string* key) {
  const Scan scan = ScanString(text, at, key);
  return scan == Scan::kWhole ? ScanMark(text, at, ":") : scan;
}

bool IsArguments(const std::string& key) {
  return key == "arguments" || key == "parameters";
}

}  // namespace

Scan CallObjectReader::ReadCall(absl::string_view text, size_t at,
                                CallHeader* call) {
  Scan scan = ScanMark(text, &at, "{");
  while (scan == Scan::kWhole) {
    std::string key;
    scan = ScanKey(text, &at, &key);
    if (scan != Scan::kWhole) break;
    const size_t value = SkipSpace(text, at);
    if (IsArguments(key) && !call->name.empty() && value < text.size() &&
        text[value] == '{') {
      is_open_ = true;
      call->size = value;
      return Scan::kWhole;
    }
    scan = ReadMember(text, key, &at, call);
    if (scan != Scan::kWhole) break;
    char symbol = '\0';
    scan = ScanNext(text, &at, &symbol);
    if (scan != Scan::kWhole || symbol == ',') continue;
    if (symbol != '}' || call->name.empty()) return Scan::kBroken;
    if (!call->arguments.has_value()) call->arguments = kNoArguments;
    is_open_ = false;
    call->size = at;
    return Scan::kWhole;
  }
  return scan;
}

Scan CallObjectReader::ReadMember(absl::string_view text,
                                  const std::string& key, size_t* at,
                                  CallHeader* call) const {
  if (key == "name") return ScanString(text, at, &call->name);
  if (IsArguments(key)) return ScanArguments(text, at, call);
  if (key == "id") return ScanString(text, at, &call->id);
  if (key != "type" && others_ == OtherMembers::kBreakIt) return Scan::kBroken;
  return ScanValue(text, at);
}

Scan CallObjectReader::ReadEnd(absl::string_view text, size_t* at) const {
  size_t end = *at;
  for (bool is_open = is_open_; is_open;) {
    char symbol = '\0';
    Scan scan = ScanNext(text, &end, &symbol);
    if (scan != Scan::kWhole) return scan;
    if (symbol != '}' && symbol != ',') return Scan::kBroken;
    is_open = symbol == ',';
    if (!is_open) break;
    std::string key;
    scan = ScanKey(text, &end, &key);
    if (scan == Scan::kWhole) scan = ScanValue(text, &end);
    if (scan != Scan::kWhole) return scan;
  }
  *at = end;
  return Scan::kWhole;
}

}  // namespace lockstep
