#include "frontend/discovery/kubernetes_discovery.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <glog/logging.h>
#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/status_macros.h"
#include "frontend/discovery/line_splitter.h"

namespace lockstep {
namespace {

constexpr size_t kMostNameBytes = 63;
constexpr size_t kMostListBytes = 8 << 20;
constexpr size_t kMostEventBytes = 2 << 20;  // etcd holds 1.5 MiB
constexpr absl::Duration kListTimeout = absl::Seconds(30);
// Drawn for each watch, so that gateways do not come all at once.
constexpr int kLeastWatchS = 240;
constexpr int kMostWatchS = 300;
// For the server to end a watch by itself.
constexpr absl::Duration kWatchMargin = absl::Seconds(15);
constexpr int kMostDoublings = 16;
// In a row. A server that was away may have been set back, and a watch from a
// version that it does not have yet is silent until that has come.
constexpr int kMostResumptions = 1;

// A label of RFC 1123.
bool IsName(absl::string_view name) {
  const auto is_alnum = [](char c) {
    return absl::ascii_islower(c) || absl::ascii_isdigit(c);
  };
  return !name.empty() && name.size() <= kMostNameBytes &&
         is_alnum(name.front()) && is_alnum(name.back()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_alnum(c) || c == '-'; });
}

std::string Describe(const absl::Status& status,
                     const KubernetesService& service) {
  std::string text =
      absl::StrCat("cannot follow the Service ", service.name_space, "/",
                   service.name, ": ", status.message());
  if (absl::IsPermissionDenied(status)) {
    absl::StrAppend(&text,
                    "; the gateway's service account needs a Role in the "
                    "namespace ",
                    service.name_space,
                    " with the rule {apiGroups: [discovery.k8s.io], resources: "
                    "[endpointslices], verbs: [list, watch]}");
  }
  return text;
}

absl::Time SteadyNow() {
  return absl::UnixEpoch() +
         absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

}  // namespace

std::optional<KubernetesService> ParseKubernetesService(
    absl::string_view value) {
  const std::vector<std::string> parts = absl::StrSplit(value, '/');
  if (parts.size() != 2 || !IsName(parts[0]) || !IsName(parts[1])) {
    return std::nullopt;
  }
  return KubernetesService{parts[0], parts[1]};
}

KubernetesDiscovery::KubernetesDiscovery(const Options& options,
                                         Listener listener)
    : options_(options),
      listener_(std::move(listener)),
      client_(options.server, options.account_folder),
      random_(std::random_device()()) {}

void KubernetesDiscovery::Start() {
  thread_ = std::thread([this] { Follow(); });
  pthread_setname_np(thread_.native_handle(), "discovery");
}

void KubernetesDiscovery::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
  }
  client_.Stop();
  if (thread_.joinable()) thread_.join();
}

void KubernetesDiscovery::Follow() {
  do {
    const absl::Status status = ListAndWatch();
    if (status.code() == absl::StatusCode::kCancelled) return;
    failures_ = status.ok() ? 0 : failures_ + 1;
    Note(status);
  } while (Pause());
}

absl::Status KubernetesDiscovery::ListAndWatch() {
  if (needs_list_ || SteadyNow() - listed_at_ >= options_.list_every) {
    LOCKSTEP_RETURN_IF_ERROR(List());
  }
  const absl::Status status = Watch();
  // A connection that broke says nothing of what it brought.
  const bool goes_on = status.ok() || (absl::IsUnavailable(status) &&
                                       failures_ < kMostResumptions);
  needs_list_ = !goes_on;
  // That it was away for too long is no failure of anybody's.
  return absl::IsOutOfRange(status) ? absl::OkStatus() : status;
}

std::string KubernetesDiscovery::Target() const {
  return absl::StrCat("/apis/discovery.k8s.io/v1/namespaces/",
                      options_.service.name_space, "/endpointslices",
                      "?labelSelector=kubernetes.io%2Fservice-name%3D",
                      options_.service.name);
}

absl::Status KubernetesDiscovery::List() {
  std::string body;
  LOCKSTEP_RETURN_IF_ERROR(
      client_.Get(Target(), kListTimeout, [&body](absl::string_view part) {
        body.append(part.data(), part.size());
        return body.size() <= kMostListBytes
                   ? absl::OkStatus()
                   : absl::ResourceExhaustedError(
                         absl::StrCat("the list of endpoints has more than ",
                                      kMostListBytes, " bytes"));
      }));
  LOCKSTEP_RETURN_IF_ERROR(slices_.TakeList(body));
  listed_at_ = SteadyNow();
  Note(absl::OkStatus());
  Tell();
  return absl::OkStatus();
}

absl::Status KubernetesDiscovery::Watch() {
  const int seconds =
      std::uniform_int_distribution<int>(kLeastWatchS, kMostWatchS)(random_);
  LineSplitter lines(kMostEventBytes);
  return client_.Get(
      absl::StrCat(Target(), "&watch=true&allowWatchBookmarks=true",
                   "&timeoutSeconds=", seconds,
                   "&resourceVersion=", slices_.version()),
      absl::Seconds(seconds) + kWatchMargin, [&](absl::string_view part) {
        Note(absl::OkStatus());
        return lines.Put(part, [this](absl::string_view line) {
          LOCKSTEP_RETURN_IF_ERROR(slices_.TakeEvent(line));
          failures_ = 0;
          Tell();
          return absl::OkStatus();
        });
      });
}

void KubernetesDiscovery::Tell() {
  std::vector<std::string> addresses = slices_.Addresses();
  if (addresses == told_) return;
  told_ = std::move(addresses);
  listener_(told_);
}

void KubernetesDiscovery::Note(const absl::Status& status) {
  is_up_ = status.ok();
  LOG_IF(WARNING, !status.ok() && status != failure_)
      << Describe(status, options_.service)
      << "; the workers stay as they were";
  failure_ = status;
}

bool KubernetesDiscovery::Pause() {
  const absl::Duration most = std::min(
      options_.first_pause * (1 << std::min(failures_, kMostDoublings)),
      options_.longest_pause);
  const absl::Duration pause =
      most * std::uniform_real_distribution<double>(0.5, 1)(random_);
  absl::MutexLock lock(&mutex_);
  return !mutex_.AwaitWithTimeout(
      absl::Condition(this, &KubernetesDiscovery::IsStopping), pause);
}

}  // namespace lockstep
