#include "frontend/http/request_reader.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <cstdint>
#include <utility>

#include "frontend/http/router.h"

namespace lockstep::http {
namespace {

namespace beast = boost::beast;
using beast::http::error;

absl::string_view View(beast::string_view text) {
  return {text.data(), text.size()};
}

Refusal Describe(const beast::error_code& failure,
                 const RequestLimits& limits) {
  if (failure == error::header_limit) {
    return {431, absl::StrCat("the header of the request is longer than ",
                              limits.header_bytes, " bytes.")};
  }
  if (failure == error::body_limit) {
    return {413, absl::StrCat("the body of the request is longer than ",
                              limits.body_bytes, " bytes.")};
  }
  if (failure == error::bad_version) {
    return {505, "this server speaks HTTP/1.1 and HTTP/1.0."};
  }
  return {400, absl::StrCat("the request is no valid HTTP: ", failure.message(),
                            ".")};
}

}  // namespace

class RequestReader::Parser : public beast::http::basic_parser<true> {
 public:
  explicit Parser(const RequestLimits& limits) : limits_(limits) {
    header_limit(static_cast<uint32_t>(limits.header_bytes));
    body_limit(limits.body_bytes);
  }

  size_t Put(absl::string_view bytes) {
    size_t used = got_some() ? 0 : SkipEmptyLines(bytes);
    if (!got_some() && bytes.substr(used) == "\r") return used;
    beast::error_code failure;
    const bool had_header = is_header_done();
    // One step a call: it returns where the next part begins.
    while (used < bytes.size() && !is_done() && refusal.status == 0 &&
           is_header_done() == had_header) {
      const size_t step =
          put({bytes.data() + used, bytes.size() - used}, failure);
      used += step;
      if (!is_header_done()) header_bytes_ += step;
      if (failure == error::need_more) break;
      if (failure) Refuse(Describe(failure, limits_));
    }
    // Beast bounds each part by itself.
    const size_t waiting =
        failure == error::need_more ? bytes.size() - used : 0;
    const size_t framing = (is_header_done() ? 0 : header_bytes_) + waiting;
    if (framing > limits_.header_bytes) {
      Refuse({431, absl::StrCat("the header of the request, or a part of its "
                                "body's framing, is longer than ",
                                limits_.header_bytes, " bytes.")});
    }
    return used;
  }

  void Refuse(Refusal why) {
    if (refusal.status == 0) refusal = std::move(why);
  }

  Request request;
  Refusal refusal;
  int version = 0;
  bool has_length = false;  // or is chunked
  bool expects_continue = false;

 private:
  using Error = beast::error_code;

  // Before a request (RFC 9112, section 2.2).
  size_t SkipEmptyLines(absl::string_view bytes) {
    size_t skipped = 0;
    while (absl::StartsWith(bytes.substr(skipped), "\r\n")) skipped += 2;
    header_bytes_ += skipped;
    return skipped;
  }

  void on_request_impl(beast::http::verb, beast::string_view method,
                       beast::string_view target, int http_version,
                       Error&) override {
    version = http_version;
    request.method = std::string(View(method));
    request.path = PathOf(View(target));
    if (request.path.empty()) {
      Refuse({400, "the request-target is no path with valid escapes."});
    }
  }

  void on_response_impl(int, beast::string_view, int, Error&) override {}

  void on_field_impl(beast::http::field name, beast::string_view key,
                     beast::string_view value, Error&) override {
    using beast::http::field;
    if (in_trailer_) return;  // of no use to anybody here
    if (request.fields.size() == limits_.fields) {
      return Refuse({431, absl::StrCat("the request has more than ",
                                       limits_.fields, " header fields.")});
    }
    const absl::string_view text = View(value);
    switch (name) {
      case field::host:
        if (std::exchange(has_host_, true)) {
          Refuse({400, "the request has two Host fields."});
        }
        break;
      case field::content_length:
        has_length = true;
        break;
      case field::transfer_encoding:
        has_length = true;
        if (!absl::EqualsIgnoreCase(text, "chunked")) {
          Refuse({501, "the only transfer coding known here is chunked."});
        }
        break;
      case field::expect:
        expects_continue = absl::EqualsIgnoreCase(text, "100-continue");
        if (!expects_continue) {
          Refuse({417, "the only expectation known here is 100-continue."});
        }
        break;
      default:
        break;
    }
    request.fields.emplace_back(View(key), text);
  }

  void on_header_impl(Error&) override {
    in_trailer_ = true;
    if (version == 11 && !has_host_) {
      Refuse({400, "the request has no Host field."});
    }
    if (version == 10 && chunked()) {
      Refuse({400, "HTTP/1.0 has no chunked transfer coding."});
    }
  }

  void on_body_init_impl(const boost::optional<uint64_t>&, Error&) override {}

  size_t on_body_impl(beast::string_view body, Error&) override {
    request.body.append(body.data(), body.size());
    return body.size();
  }

  void on_chunk_header_impl(uint64_t, beast::string_view, Error&) override {}

  size_t on_chunk_body_impl(uint64_t, beast::string_view body,
                            Error& failure) override {
    return on_body_impl(body, failure);
  }

  void on_finish_impl(Error&) override {}

  const RequestLimits limits_;
  size_t header_bytes_ = 0;
  bool has_host_ = false;
  bool in_trailer_ = false;
};

RequestReader::RequestReader(const RequestLimits& limits)
    : parser_(std::make_unique<Parser>(limits)) {}
RequestReader::~RequestReader() = default;
RequestReader::RequestReader(RequestReader&&) noexcept = default;
RequestReader& RequestReader::operator=(RequestReader&&) noexcept = default;

size_t RequestReader::Put(absl::string_view bytes) {
  return parser_->Put(bytes);
}

bool RequestReader::has_header() const { return parser_->is_header_done(); }
bool RequestReader::is_complete() const { return parser_->is_done(); }
const Refusal& RequestReader::refusal() const { return parser_->refusal; }
const Request& RequestReader::request() const { return parser_->request; }
int RequestReader::version() const { return parser_->version; }
bool RequestReader::wants_close() const { return !parser_->keep_alive(); }
bool RequestReader::has_body() const { return !parser_->is_done(); }
bool RequestReader::lacks_length() const { return !parser_->has_length; }
bool RequestReader::expects_continue() const {
  return parser_->expects_continue && parser_->version == 11;
}
size_t RequestReader::body_bytes() const {
  return parser_->request.body.size();
}
Request RequestReader::TakeRequest() { return std::move(parser_->request); }

}  // namespace lockstep::http
