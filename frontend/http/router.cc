#include "frontend/http/router.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <optional>

namespace lockstep::http {
namespace {

bool PathMatches(const std::string& pattern, absl::string_view path,
                 std::string* wildcard) {
  absl::string_view prefix = pattern;
  if (!absl::ConsumeSuffix(&prefix, "*")) return path == pattern;
  if (path.size() <= prefix.size() || !absl::StartsWith(path, prefix)) {
    return false;
  }
  *wildcard = std::string(path.substr(prefix.size()));
  return true;
}

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = absl::ascii_tolower(c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

std::optional<std::string> PercentDecode(absl::string_view text) {
  std::string decoded;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = HexDigit(text[i + 1]);
    const int low = HexDigit(text[i + 2]);
    if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
    decoded += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return decoded;
}

}  // namespace

Router::Match Router::Find(absl::string_view method,
                           absl::string_view path) const {
  Match match;
  for (const Route& route : routes_) {
    if (!PathMatches(route.path, path, &match.wildcard)) continue;
    if (route.method == method || (method == "HEAD" && route.method == "GET")) {
      match.route = &route;
      return match;
    }
    absl::StrAppend(&match.allow, match.allow.empty() ? "" : ", ", route.method,
                    route.method == "GET" ? ", HEAD" : "");
  }
  if (!match.allow.empty()) match.allow += ", OPTIONS";
  return match;
}

std::string PathOf(absl::string_view target) {
  if (target == "*") return "*";
  // Sent to a proxy, "http://host/path" is what a server gets, too.
  const size_t scheme = target.find("://");
  if (!absl::StartsWith(target, "/") && scheme != absl::string_view::npos) {
    target.remove_prefix(scheme + 3);
    const size_t slash = target.find_first_of("/?");
    if (slash == absl::string_view::npos) return "/";
    target.remove_prefix(slash);
  }
  target = target.substr(0, target.find_first_of("?#"));
  if (!absl::StartsWith(target, "/")) return "";
  return PercentDecode(target).value_or("");
}

}  // namespace lockstep::http
