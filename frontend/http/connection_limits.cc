#include "frontend/http/connection_limits.h"

#include <cstddef>

namespace lockstep::http {
namespace {

using boost::asio::ip::address;

constexpr size_t kNetworkBytes = 8;  // of an IPv6 address

std::string NetworkOf(const address& from) {
  if (from.is_v4()) {
    const auto bytes = from.to_v4().to_bytes();
    return {bytes.begin(), bytes.end()};
  }
  const auto v6 = from.to_v6();
  const auto bytes = v6.to_bytes();
  if (v6.is_v4_mapped()) return {bytes.end() - 4, bytes.end()};
  return {bytes.begin(), bytes.begin() + kNetworkBytes};
}

}  // namespace

std::optional<ConnectionLimits::Place> ConnectionLimits::Enter(
    const address& from) {
  std::string network = per_address_ > 0 ? NetworkOf(from) : "";
  absl::MutexLock lock(&mutex_);
  if (number_ >= total_) return std::nullopt;
  if (per_address_ > 0) {
    int& there = by_network_[network];
    if (there >= per_address_) return std::nullopt;
    ++there;
  }
  ++number_;
  return Place(this, std::move(network));
}

int ConnectionLimits::number() const {
  absl::MutexLock lock(&mutex_);
  return number_;
}

void ConnectionLimits::Leave(const std::string& network) {
  absl::MutexLock lock(&mutex_);
  --number_;
  const auto found = by_network_.find(network);
  if (found != by_network_.end() && --found->second == 0) {
    by_network_.erase(found);
  }
}

}  // namespace lockstep::http
