#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <string>
#include <utility>

#include "frontend/discovery/service_account.h"

namespace lockstep {

// A client of a Kubernetes API server: GET over HTTPS, a connection for each.
// The server must show a certificate of the account's CA with its host's name;
// token and CA are read anew each time.
//
//   ApiClient client(server, kAccountFolder);
//   const absl::Status status =
//       client.Get("/version", absl::Seconds(10), [&](absl::string_view part) {
//         body.append(part.data(), part.size());
//         return absl::OkStatus();
//       });
//
// Get blocks, one call at a time; Stop is any thread's.
class ApiClient {
 public:
  // Of a body: first nothing, when it is sure that one comes, then what came.
  using OnPart = std::function<absl::Status(absl::string_view part)>;

  ApiClient(ApiServer server, std::string account_folder);
  ApiClient(const ApiClient&) = delete;
  ApiClient& operator=(const ApiClient&) = delete;

  // OK: a 200, and all of its body came. The error is `on_part`'s;
  // FromApiStatus' for another answer; FAILED_PRECONDITION for files that are
  // no good; UNAVAILABLE for a server that can not be reached, is silent for
  // too long before its answer, or is not done within `limit`.
  absl::Status Get(const std::string& target, absl::Duration limit,
                   const OnPart& on_part);

  // Ends the Get that runs, and all later ones: CANCELLED.
  void Stop();

 private:
  class Exchange;

  const ApiServer server_;
  const std::string account_folder_;
  std::atomic<bool> is_stopped_ = false;
  boost::asio::io_context io_;
  // So that nothing but Stop stops it.
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type>
      work_;
};

}  // namespace lockstep
