#pragma once

#include <absl/strings/string_view.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontend/http/message.h"
#include "frontend/http/response_writer.h"

namespace lockstep::http {

// Called on an I/O thread, so it does not block.
using Handler = std::function<void(Request request,
                                   std::shared_ptr<ResponseWriter> writer)>;

struct Route {
  std::string method;  // GET also answers HEAD
  // Exact, but for a '*' at its end, which stands for at least one character.
  std::string path;
  Handler handle;
  // Of a body: its media type. Empty: a body is refused.
  std::string takes = {};
};

// Which handler a request goes to. Immutable once filled; then any thread.
//
//   Router router({{"GET", "/health", OnHealth}});
//   const Router::Match match = router.Find("GET", "/health");
class Router {
 public:
  explicit Router(std::vector<Route> routes) : routes_(std::move(routes)) {}

  struct Match {
    const Route* route = nullptr;  // null: see `allow`
    std::string wildcard;
    // The methods there are for this path; empty: no such path.
    std::string allow;
  };
  Match Find(absl::string_view method, absl::string_view path) const;

 private:
  const std::vector<Route> routes_;
};

// The path of a request-target (RFC 9112, section 3.2), percent-decoded,
// without its query; empty where it is none. "*" stays as it is.
std::string PathOf(absl::string_view target);

}  // namespace lockstep::http
