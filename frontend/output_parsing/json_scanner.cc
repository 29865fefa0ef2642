#include "frontend/output_parsing/json_scanner.h"

#include <absl/strings/match.h>

#include <nlohmann/json.hpp>

#include "frontend/output_parsing/marks.h"

namespace lockstep {
namespace {

// Moves *at, where a string begins, behind its closing quote.
Scan SkipString(absl::string_view text, size_t* at) {
  for (size_t i = *at + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      *at = i + 1;
      return Scan::kWhole;
    }
  }
  return Scan::kMore;
}

// A number or a word, which ends where something else begins.
Scan SkipScalar(absl::string_view text, size_t* at) {
  const size_t end = text.find_first_of(",]}:\" \n\r\t", *at);
  if (end == absl::string_view::npos) return Scan::kMore;
  if (end == *at) return Scan::kBroken;
  *at = end;
  return Scan::kWhole;
}

}  // namespace

size_t JsonScanner::Add(absl::string_view text) {
  size_t size = 0;
  while (size < text.size() && state_ == Scan::kMore) {
    Put(text[size]);
    if (state_ != Scan::kBroken) ++size;
  }
  return size;
}

void JsonScanner::Put(char c) {
  if (in_string_) return PutInString(c);
  if (c == '{' || c == '[') {
    if (open_.size() == kMaxDepth) state_ = Scan::kBroken;
    open_.push_back(c);
  } else if (open_.empty()) {
    state_ = Scan::kBroken;
  } else if (c == '"') {
    in_string_ = true;
  } else if (c == '}' || c == ']') {
    if (open_.back() != (c == '}' ? '{' : '[')) {
      state_ = Scan::kBroken;
      return;
    }
    open_.pop_back();
    if (open_.empty()) state_ = Scan::kWhole;
  }
}

void JsonScanner::PutInString(char c) {
  if (is_escaped_) {
    is_escaped_ = false;
  } else if (c == '\\') {
    is_escaped_ = true;
  } else if (c == '"') {
    in_string_ = false;
  }
}

Scan ScanString(absl::string_view text, size_t* at, std::string* value) {
  const size_t begin = SkipSpace(text, *at);
  if (begin == text.size()) return Scan::kMore;
  if (text[begin] != '"') return Scan::kBroken;
  size_t end = begin;
  if (SkipString(text, &end) == Scan::kMore) return Scan::kMore;
  const absl::string_view quoted = text.substr(begin, end - begin);
  const auto json = nlohmann::json::parse(quoted.begin(), quoted.end(),
                                          /*cb=*/nullptr,
                                          /*allow_exceptions=*/false);
  if (!json.is_string()) return Scan::kBroken;
  *value = json.get<std::string>();
  *at = end;
  return Scan::kWhole;
}

Scan ScanValue(absl::string_view text, size_t* at) {
  size_t end = SkipSpace(text, *at);
  if (end == text.size()) return Scan::kMore;
  Scan scan = Scan::kMore;
  if (text[end] == '"') {
    scan = SkipString(text, &end);
  } else if (text[end] == '{' || text[end] == '[') {
    JsonScanner scanner;
    end += scanner.Add(text.substr(end));
    scan = scanner.state();
  } else {
    scan = SkipScalar(text, &end);
  }
  if (scan == Scan::kWhole) *at = end;
  return scan;
}

Scan ScanMark(absl::string_view text, size_t* at, absl::string_view mark) {
  const size_t begin = SkipSpace(text, *at);
  const absl::string_view rest = text.substr(begin);
  if (absl::StartsWith(rest, mark)) {
    *at = begin + mark.size();
    return Scan::kWhole;
  }
  return absl::StartsWith(mark, rest) ? Scan::kMore : Scan::kBroken;
}

}  // namespace lockstep
