#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <ctime>
#include <optional>
#include <string>

#include "frontend/http/message.h"

namespace lockstep::http {

// How the end of a body is told.
struct Framing {
  std::optional<size_t> content_length;  // unset, and not chunked: by closing
  bool chunked = false;
  bool keep_alive = true;
};

// The status line and the fields, up to the empty line.
std::string FormatHead(const Response& response, const Framing& framing,
                       absl::string_view request_id, std::time_t now);

}  // namespace lockstep::http
