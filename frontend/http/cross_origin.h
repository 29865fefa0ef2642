#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <string>
#include <vector>

#include "frontend/http/message.h"

namespace lockstep::http {

// Which web pages may ask, and read the answers, by the CORS protocol (Fetch
// Standard, section 3.2). Cookies are of no use here, so none are allowed.
//
//   CrossOrigin pages({"https://app.example.org"});
//   const Fields fields = pages.AnswerFields(request);
//
// Immutable; any thread.
class CrossOrigin {
 public:
  // "*" among them: every page. REQUIRES: CheckOrigin of each.
  explicit CrossOrigin(std::vector<std::string> origins)
      : origins_(std::move(origins)) {}

  // What every answer says; none where its page may not read it.
  Fields AnswerFields(const Request& request) const;

  // What the answer to a browser's question before the request says besides:
  // the methods are those of the route.
  Fields PreflightFields(const Request& request,
                         absl::string_view methods) const;

 private:
  bool Allows(const Request& request) const;

  const std::vector<std::string> origins_;
};

// INVALID_ARGUMENT naming the flag unless it is "*" or scheme://host[:port].
absl::Status CheckOrigin(absl::string_view flag, absl::string_view origin);

}  // namespace lockstep::http
