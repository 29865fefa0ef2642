#include "frontend/http/cross_origin.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

namespace lockstep::http {
namespace {

constexpr char kAny[] = "*";
constexpr char kMaxAgeSeconds[] = "600";
// Beyond those that every page may read.
constexpr char kReadable[] =
    "x-request-id, retry-after, retry-after-ms, x-should-retry";

bool Has(const std::vector<std::string>& list, absl::string_view text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

}  // namespace

bool CrossOrigin::Allows(const Request& request) const {
  const std::string* origin = request.Find("origin");
  return origin != nullptr && (Has(origins_, kAny) || Has(origins_, *origin));
}

Fields CrossOrigin::AnswerFields(const Request& request) const {
  if (origins_.empty()) return {};
  Fields fields;
  const bool any = Has(origins_, kAny);
  // Caches must not show one page what was meant for another.
  if (!any) fields.emplace_back("vary", "origin");
  if (!Allows(request)) return fields;
  fields.emplace_back("access-control-allow-origin",
                      any ? kAny : *request.Find("origin"));
  fields.emplace_back("access-control-expose-headers", kReadable);
  return fields;
}

Fields CrossOrigin::PreflightFields(const Request& request,
                                    absl::string_view methods) const {
  if (!Allows(request) ||
      request.Find("access-control-request-method") == nullptr) {
    return {};
  }
  Fields fields = {{"access-control-allow-methods", std::string(methods)},
                   {"access-control-max-age", kMaxAgeSeconds}};
  // Clients' libraries have many of their own, and none is trusted here.
  if (const auto* names = request.Find("access-control-request-headers")) {
    fields.emplace_back("access-control-allow-headers", *names);
  }
  return fields;
}

absl::Status CheckOrigin(absl::string_view flag, absl::string_view origin) {
  const size_t scheme = origin.find("://");
  const absl::string_view host =
      scheme == absl::string_view::npos ? "" : origin.substr(scheme + 3);
  const bool is_origin =
      scheme > 0 && !host.empty() && host.find_first_of("/?#@ *") == host.npos;
  if (origin == kAny || is_origin) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, " names \"", origin,
                   "\"; an origin is https://HOST, https://HOST:PORT or *, "
                   "without a path."));
}

}  // namespace lockstep::http
