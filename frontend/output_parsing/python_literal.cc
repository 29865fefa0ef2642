#include "frontend/output_parsing/python_literal.h"

#include <absl/algorithm/container.h>
#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>

#include <nlohmann/json.hpp>

#include "common/utf8.h"
#include "frontend/output_parsing/marks.h"

namespace lockstep {
namespace {

using Json = nlohmann::json;

void AppendUtf8(uint32_t code, std::string* text) {
  if (code < 0x80) {
    *text += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  constexpr uint32_t kLead[] = {0, 0xc0, 0xe0, 0xf0};
  *text += static_cast<char>(kLead[more] | code >> (6 * more));
  for (int i = more - 1; i >= 0; --i) {
    *text += static_cast<char>(0x80 | (code >> (6 * i) & 0x3f));
  }
}

// The escape behind the backslash at *at.
Scan ScanEscape(absl::string_view text, size_t* at, std::string* value) {
  if (*at + 1 >= text.size()) return Scan::kMore;
  const char kind = text[*at + 1];
  const size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
  if (digits > 0) {
    if (*at + 2 + digits > text.size()) return Scan::kMore;
    uint32_t code = 0;
    const absl::string_view hex = text.substr(*at + 2, digits);
    if (!absl::c_all_of(hex, absl::ascii_isxdigit) ||
        !absl::SimpleHexAtoi(hex, &code) || code > 0x10ffff) {
      return Scan::kBroken;
    }
    AppendUtf8(code, value);
    *at += 2 + digits;
    return Scan::kWhole;
  }
  constexpr absl::string_view kEscapes = "\\'\"abfnrtv0";
  constexpr absl::string_view kValues("\\'\"\a\b\f\n\r\t\v\0", 11);
  const size_t known = kEscapes.find(kind);
  if (known != absl::string_view::npos) {
    *value += kValues[known];
  } else if (kind != '\n') {  // which joins two lines
    *value += {'\\', kind};   // no escape, as Python has it
  }
  *at += 2;
  return Scan::kWhole;
}

Scan ScanQuoted(absl::string_view text, size_t* at, std::string* json) {
  const char quote = text[*at];
  std::string value;
  size_t end = *at + 1;
  while (end < text.size() && text[end] != quote) {
    if (text[end] != '\\') {
      value += text[end++];
      continue;
    }
    const Scan scan = ScanEscape(text, &end, &value);
    if (scan != Scan::kWhole) return scan;
  }
  if (end >= text.size()) return Scan::kMore;
  *at = end + 1;
  *json += Json(RepairUtf8(value)).dump();
  return Scan::kWhole;
}

// A number or a word, which ends with what follows it.
Scan ScanWord(absl::string_view text, size_t* at, std::string* json) {
  const size_t end = text.find_first_of(",:]}) \n\r\t", *at);
  if (end == absl::string_view::npos) return Scan::kMore;
  const absl::string_view word = text.substr(*at, end - *at);
  *at = end;
  constexpr std::pair<absl::string_view, absl::string_view> kWords[] = {
      {"True", "true"}, {"False", "false"}, {"None", "null"},
      {"true", "true"}, {"false", "false"}, {"null", "null"},
  };
  for (const auto& [python, in_json] : kWords) {
    if (word != python) continue;
    json->append(in_json.data(), in_json.size());
    return Scan::kWhole;
  }
  // As it is written, since no type holds every number.
  const Json number = Json::parse(word.begin(), word.end(), nullptr, false);
  if (!number.is_number()) return Scan::kBroken;
  json->append(word.data(), word.size());
  return Scan::kWhole;
}

class Reader {
 public:
  Reader(absl::string_view text, size_t at, std::string* json)
      : text_(text), at_(at), json_(json) {}

  size_t at() const { return at_; }

  Scan Read(size_t depth) {
    at_ = SkipSpace(text_, at_);
    if (at_ == text_.size()) return Scan::kMore;
    if (depth > JsonScanner::kMaxDepth) return Scan::kBroken;
    switch (text_[at_]) {
      case '\'':
      case '"':
        return ScanQuoted(text_, &at_, json_);
      case '[':
        return ReadItems(']', "[", "]", depth);
      case '(':
        return ReadItems(')', "[", "]", depth);
      case '{':
        return ReadItems('}', "{", "}", depth);
      default:
        return ScanWord(text_, &at_, json_);
    }
  }

 private:
  Scan ReadItems(char close, absl::string_view before, absl::string_view after,
                 size_t depth) {
    json_->append(before.data(), before.size());
    ++at_;
    for (bool is_first = true;; is_first = false) {
      at_ = SkipSpace(text_, at_);
      if (at_ == text_.size()) return Scan::kMore;
      if (text_[at_] == close) break;  // also behind a last comma
      if (!is_first) *json_ += ", ";
      const Scan scan = close == '}' ? ReadEntry(depth) : Read(depth + 1);
      if (scan != Scan::kWhole) return scan;
      at_ = SkipSpace(text_, at_);
      if (at_ == text_.size()) return Scan::kMore;
      if (text_[at_] == ',') {
        ++at_;
      } else if (text_[at_] != close) {
        return Scan::kBroken;
      }
    }
    ++at_;
    json_->append(after.data(), after.size());
    return Scan::kWhole;
  }

  Scan ReadEntry(size_t depth) {
    const size_t key = json_->size();
    Scan scan = Read(depth + 1);
    if (scan != Scan::kWhole) return scan;
    const char first = (*json_)[key];
    if (first == '[' || first == '{') return Scan::kBroken;
    if (first != '"') {  // JSON's keys are strings
      json_->insert(key, 1, '"');
      *json_ += '"';
    }
    scan = ScanMark(text_, &at_, ":");
    if (scan != Scan::kWhole) return scan;
    *json_ += ": ";
    return Read(depth + 1);
  }

  const absl::string_view text_;
  size_t at_;
  std::string* const json_;
};

}  // namespace

Scan ScanPythonLiteral(absl::string_view text, size_t* at, std::string* json) {
  Reader reader(text, *at, json);
  const Scan scan = reader.Read(/*depth=*/0);
  if (scan == Scan::kWhole) *at = reader.at();
  return scan;
}

Scan ScanPythonName(absl::string_view text, size_t* at, std::string* name) {
  const size_t begin = SkipSpace(text, *at);
  size_t end = begin;
  while (end < text.size() && (absl::ascii_isalnum(text[end]) ||
                               text[end] == '_' || text[end] == '.')) {
    ++end;
  }
  if (end == text.size()) return Scan::kMore;
  if (end == begin || absl::ascii_isdigit(text[begin])) return Scan::kBroken;
  *name = std::string(text.substr(begin, end - begin));
  *at = end;
  return Scan::kWhole;
}

}  // namespace lockstep
