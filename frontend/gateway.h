#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>

#include <functional>
#include <memory>

#include "common/digest.h"
#include "common/grpc_server.h"
#include "common/health/health_board.h"
#include "common/metrics/metric_board.h"
#include "frontend/discovery/discovery.h"
#include "frontend/generation/pipeline.h"
#include "frontend/grpc/callback_canary.h"
#include "frontend/grpc/inference_service.h"
#include "frontend/http/server.h"
#include "frontend/ledger/access_log.h"
#include "frontend/ledger/request_ledger.h"
#include "frontend/openai/service.h"
#include "frontend/options.h"
#include "frontend/routing/group_set.h"
#include "frontend/security.h"
#include "frontend/tokenizer_watch.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// A running gateway: servers of gRPC and HTTP, the pipeline both use and the
// connections to the worker groups.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(
//       auto gateway, Gateway::Start(options, tokenizer.get(), announce));
//   …
//   gateway->Drain();
//
// Holds no state that outlives a request. It is healthy while a group is, and
// the tokenizer service where there is one: it may start before the groups, and
// serves again when a lost one is back.
class Gateway {
 public:
  struct Ports {
    int grpc = 0;
    int http = 0;  // 0: there is none
  };

  // on_serving: called once, when a group is ready for the first time, on a
  // thread of the gateway's. `tokenizer` must outlive the result, and so must
  // `health`, which is told whether it is ready, and `metrics`, which is told
  // what there is to count and is what /metrics answers; both may be null.
  // `drain` is called on a thread of its, where a client that may asks for it,
  // and leads to Drain by the owner.
  static absl::StatusOr<std::unique_ptr<Gateway>> Start(
      const GatewayOptions& options, const Tokenizer* tokenizer,
      std::function<void(const ServedModel& model, Ports ports)> on_serving,
      HealthBoard* health = nullptr, MetricBoard* metrics = nullptr,
      std::function<void()> drain = nullptr);

  // Drains with no time to finish, unless Drain was called.
  ~Gateway();

  Ports ports() const {
    return {server_->port(), http_ == nullptr ? 0 : http_->port()};
  }

  // Not ready first; then no new requests, and those that wait for a first
  // group are refused; running ones, which may still be sent to another group,
  // end UNAVAILABLE at the drain timeout. Returns when the last has ended.
  // Once, by the owner.
  void Drain();

 private:
  Gateway(const GatewayOptions& options, const Tokenizer* tokenizer,
          std::unique_ptr<Security> security,
          std::unique_ptr<AccessLog> access_log, MetricBoard* metrics,
          std::function<void()> drain);
  absl::Status StartHttp();
  void TellMetrics();
  absl::Status MakeTokenizerWatch(const Digest& vocabulary);
  absl::Status MakeDiscovery();
  void FindGroups();
  // OK: a group is ready, and so is the tokenizer.
  absl::Status Readiness() const;
  void OnChange();  // of it
  void Enter(Phase phase, absl::string_view detail = "");
  void Stop(absl::Duration grace);

  const GatewayOptions options_;
  MetricBoard* const metrics_;
  // In the order in which each uses the ones before it.
  const std::unique_ptr<Security> security_;
  RequestLedger ledger_;
  GroupSet groups_;
  Pipeline pipeline_;
  InferenceService service_;
  std::unique_ptr<GrpcServer> server_;
  openai::Service openai_;
  std::unique_ptr<http::Server> http_;
  std::function<void(const ServedModel&, Ports)> on_serving_;
  HealthBoard* health_ = nullptr;
  std::unique_ptr<Discovery> discovery_;  // null: groups are as they are told
  // Where the tokenizer is a service.
  std::unique_ptr<TokenizerWatch> tokenizer_watch_;
  absl::Mutex change_mutex_;  // held in OnChange
  bool is_draining_ ABSL_GUARDED_BY(change_mutex_) = false;
  std::unique_ptr<CallbackCanary> canary_;
  MetricBoard::Registration told_metrics_;  // reads all above
};

}  // namespace lockstep
