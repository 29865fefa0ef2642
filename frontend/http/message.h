#pragma once

#include <absl/strings/match.h>
#include <absl/strings/string_view.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace lockstep {
class AccessRecord;
}

namespace lockstep::http {

// (name, value) in the order they came or go; names in any case.
using Fields = std::vector<std::pair<std::string, std::string>>;

// A request that is complete, and well-formed as far as HTTP goes.
struct Request {
  std::string method;
  std::string path;      // percent-decoded; starts with '/'
  std::string wildcard;  // what the route's '*' stands for
  Fields fields;
  std::string body;
  std::string request_id;  // the client's x-request-id, or one made for it
  // Its entry in the server's book, if that keeps one.
  std::shared_ptr<AccessRecord> access;

  // The first such field, or nullptr.
  const std::string* Find(absl::string_view name) const {
    for (const auto& [key, value] : fields) {
      if (absl::EqualsIgnoreCase(key, name)) return &value;
    }
    return nullptr;
  }
};

struct Response {
  int status = 200;
  Fields fields;  // besides those the server adds
  std::string body;
};

}  // namespace lockstep::http
