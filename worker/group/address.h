#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <string>

namespace lockstep {

struct HostPort {
  std::string host;
  uint16_t port = 0;
};

// "host:port" or "[v6]:port". INVALID_ARGUMENT names the flag and the value.
absl::StatusOr<HostPort> ParseHostPort(absl::string_view address,
                                       absl::string_view flag);

// The first address of the host. Starts no thread. UNAVAILABLE names the flag
// and the host.
absl::StatusOr<boost::asio::ip::tcp::endpoint> Resolve(
    boost::asio::io_context& context, absl::string_view address,
    absl::string_view flag);

// Returns when the host can be found, as that of a pod a while after its start.
// After `timeout` the error of Resolve; says at times what it waits for.
absl::Status WaitUntilKnown(absl::string_view address, absl::string_view flag,
                            absl::Duration timeout);

// The address of this host on the way to `address`: that which whoever runs
// there sees. Sends nothing. INVALID_ARGUMENT and UNAVAILABLE name the flag.
absl::StatusOr<std::string> HostTowards(absl::string_view address,
                                        absl::string_view flag);

// Whether a server could listen there now. UNAVAILABLE names the flag.
absl::Status CheckCanListen(absl::string_view address, absl::string_view flag);

}  // namespace lockstep
