#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/testing/lossy_hub.h"

namespace lockstep::testing {

// Several hosts on this machine: a network namespace each, joined by a bridge
// or by a LossyHub. With the first network the thread that makes it moves into
// a namespace of its own, for good, from which it, and what it starts, reaches
// the hosts.
//
//   auto network = HostNetwork::Create({.num_hosts = 2});
//   if (absl::IsPermissionDenied(network.status())) GTEST_SKIP() << …;
//   (*network)->On(1, [&] { worker = Process::Start(…); });
//   …network->address(1)…
//   (*network)->Unplug(1);
//
// The namespaces have no name, only file descriptors of this process: they are
// gone with it, however it ends. One thread.
class HostNetwork {
 public:
  struct Options {
    int num_hosts = 2;
    std::optional<LossyHub::Options> hub;  // else a bridge
  };

  // PERMISSION_DENIED where this process may not make namespaces, which takes
  // root; NOT_FOUND without the program `ip`.
  static absl::StatusOr<std::unique_ptr<HostNetwork>> Create(
      const Options& options);

  ~HostNetwork();

  // "10.77.0.1" for host 0, and so on.
  static std::string address(int host);

  // Runs `fn` with this thread on that host.
  void On(int host, const std::function<void()>& fn);

  // Takes the cable out of a host.
  absl::Status Unplug(int host);

  const LossyHub* hub() const { return hub_.get(); }

 private:
  HostNetwork() = default;
  absl::Status AddHost(int host, bool with_checksums);

  int own_ = -1;            // namespace of the thread
  std::vector<int> hosts_;  // namespaces
  std::unique_ptr<LossyHub> hub_;
};

}  // namespace lockstep::testing
