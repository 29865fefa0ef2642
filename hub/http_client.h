#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace lockstep {

// What an HTTP server answered, whatever its status.
struct HttpReply {
  int status = 0;
  std::map<std::string, std::string> fields;  // names in lower case
  std::string location;  // where a redirect leads, absolute; else empty
  std::string body;      // of a GET without a sink

  const std::string& Field(const std::string& name) const;  // empty: none
};

// Where a hub's files come from: GET and HEAD, by libcurl, over connections
// that are kept. Proxies are those of the usual variables (https_proxy,
// no_proxy, …), certificates the system's. Redirects are not followed: who
// holds a token decides where it goes.
//
//   HttpClient client;
//   LOCKSTEP_ASSIGN_OR_RETURN(const HttpReply reply,
//                             client.Get({.url = "https://host/file"}));
//
// UNAVAILABLE says why no answer came, or why it stopped coming. One thread.
class HttpClient {
 public:
  // Takes a part of a body; `reply` has status and fields. What it returns ends
  // the request with that.
  using Sink = std::function<absl::Status(const HttpReply& reply,
                                          absl::string_view part)>;

  struct Request {
    std::string url = {};
    std::string token = {};  // empty: none is sent
    int64_t first_byte = 0;  // above 0: asked for by a range
    bool head = false;
    Sink sink = nullptr;  // of a body with status 200 or 206
  };

  HttpClient();
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  absl::StatusOr<HttpReply> Ask(const Request& request);

 private:
  struct Curl;

  const std::unique_ptr<Curl> curl_;
};

}  // namespace lockstep
