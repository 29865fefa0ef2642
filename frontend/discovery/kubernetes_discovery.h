#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <atomic>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "frontend/discovery/api_client.h"
#include "frontend/discovery/discovery.h"
#include "frontend/discovery/endpoint_slices.h"
#include "frontend/discovery/service_account.h"

namespace lockstep {

// A Service whose endpoints are leaders, such as the headless one of the chart.
struct KubernetesService {
  std::string name_space;
  std::string name;
};

// From "namespace/service"; none if it is not that.
std::optional<KubernetesService> ParseKubernetesService(
    absl::string_view value);

// Follows the EndpointSlices of a Service: one list, then watches, each going
// on from where the last one ended.
//
//   KubernetesDiscovery discovery(
//       {.service = service, .server = server, .account_folder = folder},
//       [&](auto& addresses) { groups.SetAddresses(addresses); });
//   discovery.Start();
//
// A list is asked for again when a watch can not go on, after two failures in a
// row, and every half an hour, so that nothing missed stays missed. A watch is
// at most five minutes old. After a failure it waits for a drawn time, up to
// half a minute; the random numbers are its own. Stop ends a request that is
// under way.
class KubernetesDiscovery : public Discovery {
 public:
  struct Options {
    KubernetesService service;
    ApiServer server;
    std::string account_folder;
    // Before the next request, doubling with each failure in a row.
    absl::Duration first_pause = absl::Seconds(1);
    absl::Duration longest_pause = absl::Seconds(30);
    absl::Duration list_every = absl::Minutes(30);
  };

  KubernetesDiscovery(const Options& options, Listener listener);
  ~KubernetesDiscovery() override { Stop(); }
  KubernetesDiscovery(const KubernetesDiscovery&) = delete;
  KubernetesDiscovery& operator=(const KubernetesDiscovery&) = delete;

  void Start() override;
  void Stop() override;
  bool is_up() const override { return is_up_; }

 private:
  void Follow();  // the thread
  absl::Status ListAndWatch();
  absl::Status List();
  absl::Status Watch();
  void Tell();
  void Note(const absl::Status& status);
  // Whether to go on then.
  bool Pause();
  bool IsStopping() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_;
  }
  std::string Target() const;

  const Options options_;
  const Listener listener_;
  ApiClient client_;
  std::atomic<bool> is_up_ = false;

  // The thread's.
  std::mt19937_64 random_;
  EndpointSlices slices_;
  bool needs_list_ = true;
  absl::Time listed_at_ = absl::InfinitePast();
  std::vector<std::string> told_;
  absl::Status failure_;  // the last attempt's
  int failures_ = 0;      // in a row

  absl::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // "discovery"; joined by Stop
};

}  // namespace lockstep
