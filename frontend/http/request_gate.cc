#include "frontend/http/request_gate.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <utility>

#include "common/request_id.h"

namespace lockstep::http {
namespace {

absl::string_view MediaType(absl::string_view content_type) {
  return absl::StripAsciiWhitespace(
      content_type.substr(0, content_type.find(';')));
}

Refusal CheckBody(const RequestReader& reader, const Route& route) {
  const Request& request = reader.request();
  if (route.takes.empty()) {
    if (!reader.has_body()) return {};
    return {400,
            absl::StrCat(request.method, " ", request.path, " takes no body.")};
  }
  if (reader.lacks_length()) {
    return {411,
            "the request says neither Content-Length nor Transfer-Encoding: "
            "chunked; one of them is needed."};
  }
  const std::string* type = request.Find("content-type");
  if (type == nullptr ||
      !absl::EqualsIgnoreCase(MediaType(*type), route.takes)) {
    return {415, absl::StrCat("the Content-Type is ",
                              type == nullptr ? "missing" : "another",
                              "; it must be ", route.takes, ".")};
  }
  const std::string* coding = request.Find("content-encoding");
  if (coding != nullptr && !absl::EqualsIgnoreCase(*coding, "identity")) {
    return {415, "the body has a Content-Encoding; it must have none."};
  }
  return {};
}

}  // namespace

Admission Admit(const RequestReader& reader, const Router& router) {
  const Request& request = reader.request();
  Admission admission;
  if (const std::string* id = request.Find("x-request-id"); id != nullptr) {
    const absl::Status status = CheckRequestId("x-request-id", *id);
    if (status.ok()) {
      admission.request_id = *id;
    } else {
      admission.refusal = {400, std::string(status.message())};
    }
  }
  if (admission.request_id.empty()) admission.request_id = MakeRequestId("req");
  if (admission.refusal.status != 0) return admission;

  Router::Match match = router.Find(request.method, request.path);
  admission.route = match.route;
  admission.wildcard = std::move(match.wildcard);
  admission.allow = std::move(match.allow);
  if (admission.route != nullptr) {
    admission.refusal = CheckBody(reader, *admission.route);
  } else if (request.path == "*" && request.method == "OPTIONS") {
    admission.allow = "GET, HEAD, POST, OPTIONS";
  } else if (admission.allow.empty()) {
    admission.refusal = {404, absl::StrCat("there is no ", request.path, ".")};
  } else if (request.method != "OPTIONS") {
    admission.refusal = {
        405, absl::StrCat(request.path, " knows no ", request.method,
                          "; it knows ", admission.allow, ".")};
  }
  return admission;
}

}  // namespace lockstep::http
