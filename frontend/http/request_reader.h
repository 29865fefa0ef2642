#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <memory>
#include <string>

#include "frontend/http/message.h"

namespace lockstep::http {

// What a request may hold.
struct RequestLimits {
  size_t header_bytes = 16 << 10;  // request line, fields, trailers
  size_t fields = 100;
  size_t body_bytes = 32 << 20;
};

// Why a request is refused, in HTTP's terms.
struct Refusal {
  int status = 0;  // 0: it is not
  std::string message;
};

// Bytes in, one request out; Boost.Beast's parser with the bounds it does not
// have, and stricter where two readers could understand a request differently
// (RFC 9112, section 11.2).
//
//   RequestReader reader(limits);
//   size_t used = reader.Put(bytes);   // present the rest again, with more
//   if (reader.refusal().status != 0) …
//   if (reader.is_complete()) handle(reader.TakeRequest());
//
// Stops behind the header, so that one can look at it before its body comes.
// No socket, no thread. After a refusal, or once complete, no Put.
class RequestReader {
 public:
  explicit RequestReader(const RequestLimits& limits);
  ~RequestReader();
  RequestReader(RequestReader&&) noexcept;
  RequestReader& operator=(RequestReader&&) noexcept;

  // The number of bytes used; those left are the start of something that is
  // not there as a whole, or lie behind the header or the request's end.
  size_t Put(absl::string_view bytes);

  bool has_header() const;
  bool is_complete() const;
  const Refusal& refusal() const;

  // From has_header() on.
  const Request& request() const;
  int version() const;        // 10 or 11
  bool wants_close() const;   // after the answer
  bool has_body() const;      // one follows, of any length but 0
  bool lacks_length() const;  // nothing says how long a body is
  bool expects_continue() const;

  size_t body_bytes() const;  // read so far
  Request TakeRequest();

 private:
  class Parser;
  std::unique_ptr<Parser> parser_;  // keeps Beast out of this header
};

}  // namespace lockstep::http
