#include "common/program/config_file.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>

#include <algorithm>
#include <cstddef>
#include <map>

#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr absl::string_view kComment = " #";

bool IsName(absl::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '_';
  });
}

absl::string_view WithoutComment(absl::string_view text) {
  return absl::StripTrailingAsciiWhitespace(
      text.substr(0, text.find(kComment)));
}

// What is between the quotes of `text`, which begins with one.
absl::StatusOr<absl::string_view> Unquote(absl::string_view text) {
  const size_t end = text.find('"', 1);
  if (end == text.npos) {
    return absl::InvalidArgumentError("the value has no closing quote.");
  }
  const absl::string_view rest = text.substr(end + 1);
  if (!rest.empty() && !absl::StartsWith(rest, kComment) &&
      !absl::StripAsciiWhitespace(rest).empty()) {
    return absl::InvalidArgumentError("something follows the closing quote.");
  }
  return text.substr(1, end - 1);
}

absl::StatusOr<ConfigEntry> ParseLine(absl::string_view line) {
  const size_t colon = line.find(':');
  if (colon == line.npos || !IsName(line.substr(0, colon))) {
    return absl::InvalidArgumentError("this is no \"name: value\".");
  }
  if (line.find('\0') != line.npos) {
    return absl::InvalidArgumentError("the line has a byte 0.");
  }
  const absl::string_view after = line.substr(colon + 1);
  absl::string_view value = absl::StripLeadingAsciiWhitespace(after);
  if (absl::StartsWith(value, "\"")) {
    LOCKSTEP_ASSIGN_OR_RETURN(value, Unquote(value));
  } else if (absl::StartsWith(value, "#") && value.size() < after.size()) {
    value = "";
  } else {
    value = WithoutComment(value);
  }
  return ConfigEntry{.name = std::string(line.substr(0, colon)),
                     .value = std::string(value)};
}

}  // namespace

absl::StatusOr<std::vector<ConfigEntry>> ParseConfig(absl::string_view text,
                                                     absl::string_view path) {
  std::vector<ConfigEntry> entries;
  std::map<std::string, int> lines;  // by name
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripTrailingAsciiWhitespace(line);
    if (absl::StripLeadingAsciiWhitespace(line).empty() ||
        absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "#")) {
      continue;
    }
    absl::StatusOr<ConfigEntry> entry = ParseLine(line);
    if (!entry.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number, ": ", entry.status().message()));
    }
    entry->line = number;
    const auto [first, is_new] = lines.emplace(entry->name, number);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ":", number, ": ", entry->name,
                       " is set already, by line ", first->second, "."));
    }
    entries.push_back(*std::move(entry));
  }
  return entries;
}

std::string FormatConfigLine(absl::string_view name, absl::string_view value) {
  const bool is_plain = !value.empty() && value[0] != '"' && value[0] != '#' &&
                        value == absl::StripAsciiWhitespace(value) &&
                        !absl::StrContains(value, kComment);
  const absl::string_view quote = is_plain ? "" : "\"";
  return absl::StrCat(name, ": ", quote, value, quote);
}

}  // namespace lockstep
