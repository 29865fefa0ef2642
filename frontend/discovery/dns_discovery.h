#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "frontend/discovery/discovery.h"

namespace lockstep {

// Where worker groups are found: each address of a name is one, such as the
// leaders behind a headless service.
struct DnsName {
  std::string host;
  int port = 0;
};

// From "name:port"; none if it is not that.
std::optional<DnsName> ParseDnsName(absl::string_view value);

// What a resolver found, in its order.
struct FoundAddress {
  bool is_ipv6 = false;
  std::string text;
};

// In order and without doubles. A host of both families is there twice, and
// nothing says that it is one: of the families that with more addresses counts
// and, where they have as many, that of the first.
std::vector<std::string> OfOneFamily(const std::vector<FoundAddress>& found);

// The addresses of a name by the system's resolver, each "address:port".
// Blocks, as long as the resolver does.
absl::StatusOr<std::vector<std::string>> Resolve(const DnsName& name);

// Asks for the addresses again and again, and tells them when they have
// changed.
//
//   DnsDiscovery discovery([&] { return Resolve(name); },
//                          [&](auto& addresses) { groups.SetAddresses(…); });
//   discovery.Start();
//
// Both functions are called on its thread. Stop waits for a resolution that is
// under way.
class DnsDiscovery : public Discovery {
 public:
  using Resolver = std::function<absl::StatusOr<std::vector<std::string>>()>;

  DnsDiscovery(Resolver resolve, Listener listener,
               absl::Duration interval = absl::Seconds(5))
      : resolve_(std::move(resolve)),
        listener_(std::move(listener)),
        interval_(interval) {}
  ~DnsDiscovery() override { Stop(); }
  DnsDiscovery(const DnsDiscovery&) = delete;
  DnsDiscovery& operator=(const DnsDiscovery&) = delete;

  void Start() override;
  void Stop() override;
  bool is_up() const override { return is_up_; }

 private:
  void Follow();  // the thread
  void Look();
  bool IsStopping() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_;
  }

  const Resolver resolve_;
  const Listener listener_;
  const absl::Duration interval_;
  std::vector<std::string> addresses_;  // the thread's
  absl::Status failure_;                // the last look's; the thread's
  std::atomic<bool> is_up_ = false;

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // "discovery"; joined by Stop
};

}  // namespace lockstep
