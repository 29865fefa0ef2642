#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <boost/asio/ip/address.hpp>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

namespace lockstep::http {

// The connections there are, in all and from each address. Of IPv6 the first 64
// bits count as one address, as a single host may have all of the rest.
//
//   if (auto place = limits.Enter(socket.remote_endpoint().address())) …
//
// Any thread.
class ConnectionLimits {
 public:
  // A connection's, given back by the destructor. Does not outlive the limits.
  class Place {
   public:
    Place(Place&& other) noexcept
        : owner_(std::exchange(other.owner_, nullptr)),
          network_(std::move(other.network_)) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (owner_ != nullptr) owner_->Leave(network_);
    }

   private:
    friend class ConnectionLimits;
    Place(ConnectionLimits* owner, std::string network)
        : owner_(owner), network_(std::move(network)) {}

    ConnectionLimits* owner_;
    std::string network_;
  };

  // per_address 0: as many as there may be in all.
  ConnectionLimits(int total, int per_address)
      : total_(total), per_address_(per_address) {}

  // None where a limit is reached.
  std::optional<Place> Enter(const boost::asio::ip::address& address);

  int number() const;

 private:
  void Leave(const std::string& network);

  const int total_;
  const int per_address_;
  mutable absl::Mutex mutex_;
  int number_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, int> by_network_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::http
