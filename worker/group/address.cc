#include "worker/group/address.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>
#include <glog/logging.h>

#include <algorithm>
#include <boost/asio/ip/udp.hpp>
#include <chrono>

#include "common/flag_check.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr uint16_t kAnyPort = 9;  // not 0
constexpr absl::Duration kLookEvery = absl::Milliseconds(200);
constexpr absl::Duration kReportEvery = absl::Seconds(5);

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(absl::string_view address,
                                       absl::string_view flag) {
  LOCKSTEP_RETURN_IF_ERROR(CheckAddressFlag(flag, address, /*least_port=*/0));
  const size_t colon = address.rfind(':');
  int port = 0;
  CHECK(absl::SimpleAtoi(address.substr(colon + 1), &port)) << address;
  absl::string_view host = address.substr(0, colon);
  if (host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  return HostPort{.host = std::string(host),
                  .port = static_cast<uint16_t>(port)};
}

absl::StatusOr<boost::asio::ip::tcp::endpoint> Resolve(
    boost::asio::io_context& context, absl::string_view address,
    absl::string_view flag) {
  LOCKSTEP_ASSIGN_OR_RETURN(const HostPort parts, ParseHostPort(address, flag));
  boost::system::error_code error;
  boost::asio::ip::tcp::resolver resolver(context);
  const auto found =
      resolver.resolve(parts.host, absl::StrCat(parts.port),
                       boost::asio::ip::tcp::resolver::numeric_service, error);
  if (error || found.empty()) {
    return absl::UnavailableError(absl::StrCat("cannot find the host \"",
                                               parts.host, "\" of --", flag,
                                               ": ", error.message(), "."));
  }
  return found.begin()->endpoint();
}

absl::Status WaitUntilKnown(absl::string_view address, absl::string_view flag,
                            absl::Duration timeout) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  absl::Duration next_report = kReportEvery;
  for (;;) {
    boost::asio::io_context context;
    const absl::Status found = Resolve(context, address, flag).status();
    const absl::Duration waited = absl::FromChrono(Clock::now() - begin);
    if (!absl::IsUnavailable(found) || waited >= timeout) return found;
    if (waited >= next_report) {
      LOG(INFO) << found.message() << " Waiting for it.";
      next_report = waited + kReportEvery;
    }
    // Nobody tells of a change of names.
    absl::SleepFor(std::min(kLookEvery, timeout - waited));
  }
}

absl::StatusOr<std::string> HostTowards(absl::string_view address,
                                        absl::string_view flag) {
  using boost::asio::ip::udp;
  boost::asio::io_context context;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto endpoint,
                            Resolve(context, address, flag));
  if (endpoint.address().is_unspecified()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--", flag, " is \"", address,
                     "\"; with --collective=gloo it must be an address that ",
                     "the other hosts reach."));
  }
  // A datagram socket that connects only asks for the route.
  const udp::endpoint target(endpoint.address(), kAnyPort);
  udp::socket socket(context);
  boost::system::error_code error;
  udp::endpoint own;
  socket.connect(target, error);
  if (!error) own = socket.local_endpoint(error);
  if (!error) return own.address().to_string();
  return absl::UnavailableError(absl::StrCat("there is no way to --", flag, " ",
                                             address, " (", error.message(),
                                             ")."));
}

absl::Status CheckCanListen(absl::string_view address, absl::string_view flag) {
  boost::asio::io_context context;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto endpoint,
                            Resolve(context, address, flag));
  boost::asio::ip::tcp::acceptor acceptor(context);
  boost::system::error_code error;
  acceptor.open(endpoint.protocol(), error);
  if (!error)
    acceptor.set_option(boost::asio::socket_base::reuse_address(true));
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(1, error);
  if (!error) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("cannot listen on ", address, " (", error.message(),
                   "); choose another with --", flag, "."));
}

}  // namespace lockstep
