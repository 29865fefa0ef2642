#include "frontend/http/response_head.h"

#include <absl/strings/str_cat.h>

#include <boost/beast/http/status.hpp>

namespace lockstep::http {
namespace {

// As RFC 9110, section 5.6.7, has it.
std::string FormatDate(std::time_t time) {
  std::tm utc = {};
  gmtime_r(&time, &utc);
  char text[sizeof("Sun, 06 Nov 1994 08:49:37 GMT")];
  std::strftime(text, sizeof(text), "%a, %d %b %Y %H:%M:%S GMT", &utc);
  return text;
}

}  // namespace

std::string FormatHead(const Response& response, const Framing& framing,
                       absl::string_view request_id, std::time_t now) {
  const auto reason = boost::beast::http::obsolete_reason(
      boost::beast::http::int_to_status(response.status));
  std::string head = absl::StrCat(
      "HTTP/1.1 ", response.status, " ",
      absl::string_view(reason.data(), reason.size()),
      "\r\ndate: ", FormatDate(now), "\r\nx-request-id: ", request_id, "\r\n");
  for (const auto& [name, value] : response.fields) {
    absl::StrAppend(&head, name, ": ", value, "\r\n");
  }
  if (framing.chunked) {
    head += "transfer-encoding: chunked\r\n";
  } else if (framing.content_length.has_value()) {
    absl::StrAppend(&head, "content-length: ", *framing.content_length, "\r\n");
  }
  absl::StrAppend(&head,
                  "connection: ", framing.keep_alive ? "keep-alive" : "close",
                  "\r\n\r\n");
  return head;
}

}  // namespace lockstep::http
