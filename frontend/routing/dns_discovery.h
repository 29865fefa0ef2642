#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {

// Where worker groups are found: each address of a name is one, such as the
// leaders behind a headless service.
struct DnsName {
  std::string host;
  int port = 0;
};

// From "dns:name:port"; INVALID_ARGUMENT names the flag.
absl::StatusOr<DnsName> ParseDnsName(absl::string_view flag,
                                     absl::string_view value);

// The addresses of a name by the system's resolver, each "address:port", in
// order and without doubles. Blocks, as long as the resolver does.
absl::StatusOr<std::vector<std::string>> Resolve(const DnsName& name);

// Asks for the addresses again and again, and tells them when they have
// changed. What can not be resolved now stays as it was.
//
//   DnsDiscovery discovery([&] { return Resolve(name); },
//                          [&](auto& addresses) { groups.SetAddresses(…); });
//   discovery.Start();
//
// Both functions are called on its thread. Start and Stop are the owner's, once
// each; Stop waits for a resolution that is under way.
class DnsDiscovery {
 public:
  using Resolver = std::function<absl::StatusOr<std::vector<std::string>>()>;
  using Listener = std::function<void(const std::vector<std::string>&)>;

  DnsDiscovery(Resolver resolve, Listener listener,
               absl::Duration interval = absl::Seconds(5))
      : resolve_(std::move(resolve)),
        listener_(std::move(listener)),
        interval_(interval) {}
  ~DnsDiscovery() { Stop(); }
  DnsDiscovery(const DnsDiscovery&) = delete;
  DnsDiscovery& operator=(const DnsDiscovery&) = delete;

  void Start();
  void Stop();

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

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // "discovery"; joined by Stop
};

}  // namespace lockstep
