#include "frontend/discovery/dns_discovery.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <glog/logging.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>

#include <memory>
#include <set>

#include "common/flag_check.h"

namespace lockstep {
namespace {

// "10.0.0.7:50052" or "[fd00::7]:50052".
std::string FormatAddress(const addrinfo& info, int port) {
  char host[NI_MAXHOST];
  if (getnameinfo(info.ai_addr, info.ai_addrlen, host, sizeof(host), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return "";
  }
  return info.ai_family == AF_INET6 ? absl::StrCat("[", host, "]:", port)
                                    : absl::StrCat(host, ":", port);
}

}  // namespace

std::optional<DnsName> ParseDnsName(absl::string_view value) {
  DnsName name;
  const size_t colon = value.rfind(':');
  if (colon == absl::string_view::npos || colon == 0 ||
      !absl::SimpleAtoi(value.substr(colon + 1), &name.port) ||
      name.port <= 0 || name.port > kMaxPort) {
    return std::nullopt;
  }
  name.host = std::string(value.substr(0, colon));
  return name;
}

std::vector<std::string> OfOneFamily(const std::vector<FoundAddress>& found) {
  std::set<std::string> ipv4, ipv6;
  for (const FoundAddress& address : found) {
    (address.is_ipv6 ? ipv6 : ipv4).insert(address.text);
  }
  const bool takes_ipv6 = ipv4.size() == ipv6.size()
                              ? !found.empty() && found.front().is_ipv6
                              : ipv6.size() > ipv4.size();
  const std::set<std::string>& taken = takes_ipv6 ? ipv6 : ipv4;
  return {taken.begin(), taken.end()};
}

absl::StatusOr<std::vector<std::string>> Resolve(const DnsName& name) {
  addrinfo hints = {};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int error = getaddrinfo(name.host.c_str(), nullptr, &hints, &found);
  if (error != 0) {
    return absl::UnavailableError(
        absl::StrCat("cannot resolve ", name.host, ": ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, decltype(&freeaddrinfo)> owner(found,
                                                                 freeaddrinfo);
  std::vector<FoundAddress> addresses;
  for (const addrinfo* info = found; info != nullptr; info = info->ai_next) {
    addresses.push_back(
        {info->ai_family == AF_INET6, FormatAddress(*info, name.port)});
  }
  return OfOneFamily(addresses);
}

void DnsDiscovery::Start() {
  thread_ = std::thread([this] { Follow(); });
  pthread_setname_np(thread_.native_handle(), "discovery");
}

void DnsDiscovery::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  if (thread_.joinable()) thread_.join();
}

void DnsDiscovery::Follow() {
  while (true) {
    Look();
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(
            absl::Condition(this, &DnsDiscovery::IsStopping), interval_)) {
      return;
    }
  }
}

void DnsDiscovery::Look() {
  const auto addresses = resolve_();
  LOG_IF(WARNING, !addresses.ok() && addresses.status() != failure_)
      << addresses.status().message() << "; the workers stay as they were";
  failure_ = addresses.status();
  is_up_ = addresses.ok();
  if (!addresses.ok() || *addresses == addresses_) return;
  addresses_ = *addresses;
  listener_(addresses_);
}

}  // namespace lockstep
