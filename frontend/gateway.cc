#include "frontend/gateway.h"

#include <absl/strings/str_join.h>
#include <glog/logging.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "common/digest.h"
#include "common/error_reason.h"
#include "common/security/grpc_credentials.h"
#include "common/status_macros.h"
#include "frontend/discovery/make_discovery.h"
#include "frontend/gateway_metrics.h"
#include "frontend/grpc/request_parser.h"
#include "frontend/grpc/stream_watch.h"
#include "frontend/openai/error_response.h"
#include "frontend/output_parsing/output_format.h"
#include "frontend/routing/policy/make_policy.h"
#include "frontend/routing/routing_clock.h"

namespace lockstep {
namespace {

// For what has been written to reach the clients, at least. Over gRPC it has,
// or its request were still in flight; watchers of the health never leave by
// themselves, so that server waits for all of it.
constexpr int kFlushMs = 100;

// For the calls of a connection that is too old for new ones.
constexpr absl::Duration kLeastAgeGrace = absl::Hours(1);

// For requests that are told to end. One whose client does not read can not.
constexpr absl::Duration kEndTimeout = absl::Seconds(1);

std::string WorkersOf(const GatewayOptions& options) {
  return options.worker_discovery.where.empty()
             ? absl::StrJoin(options.workers, ", ")
             : options.worker_discovery.where;
}

absl::StatusOr<std::unique_ptr<AccessLog>> OpenAccessLog(
    const std::string& path) {
  if (path.empty()) return nullptr;
  return AccessLog::Open(path, "access_log");
}

http::Route MetricsRoute(const MetricBoard* metrics) {
  return {"GET", "/metrics",
          [metrics](http::Request /*request*/,
                    const std::shared_ptr<http::ResponseWriter>& writer) {
            writer->Send(
                {200, {{"content-type", kMetricsMediaType}}, metrics->Text()});
          }};
}

GroupSetOptions RoutingOf(const GatewayOptions& options,
                          const Tokenizer& tokenizer,
                          const Security& security) {
  GroupSetOptions routing = options.routing;
  routing.tls = security.worker_tls();
  const Digest tokens = tokenizer.vocabulary().MakeTokensDigest();
  routing.tokenizer = {
      .vocabulary_size = tokenizer.info().vocabulary_size,
      .tokens_digest = std::string(tokens.begin(), tokens.end())};
  return routing;
}

// A client's patience does not depend on the protocol.
StreamWatch::Limits StreamLimitsOf(const GatewayOptions& options) {
  return {.write = options.timeouts.write,
          .heartbeat = options.timeouts.keep_alive,
          .total = absl::ToChronoNanoseconds(options.routing.request_timeout),
          .least_bytes = options.timeouts.least_write_bytes};
}

}  // namespace

absl::StatusOr<std::unique_ptr<Gateway>> Gateway::Start(
    const GatewayOptions& options, const Tokenizer* tokenizer,
    std::function<void(const ServedModel& model, Ports ports)> on_serving,
    HealthBoard* health, MetricBoard* metrics, std::function<void()> drain) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      const OutputFormat format,
      ChooseOutputFormat(options.tool_call_parser, options.reasoning_parser,
                         tokenizer->info().chat_template.value_or("")));
  LOG(INFO) << "the answers of chats are read as " << format.ToString();
  GatewayOptions chosen = options;
  chosen.pipeline.output_format = format;
  LOCKSTEP_ASSIGN_OR_RETURN(auto security, Security::Start(options.security));
  LOCKSTEP_ASSIGN_OR_RETURN(auto access_log, OpenAccessLog(options.access_log));
  std::unique_ptr<Gateway> gateway(
      new Gateway(chosen, tokenizer, std::move(security), std::move(access_log),
                  metrics, std::move(drain)));
  gateway->health_ = health;
  gateway->on_serving_ = std::move(on_serving);
  LOCKSTEP_ASSIGN_OR_RETURN(
      gateway->server_,
      GrpcServer::Start(
          options.listen, "listen", {&gateway->service_},
          {v1::Inference::service_full_name()},
          {.max_request_bytes = kMaxRequestBytes,
           .credentials = MakeServerCredentials(gateway->security_->tls()),
           .max_connection_age = options.max_connection_age,
           .age_grace =
               std::max(kLeastAgeGrace, options.routing.request_timeout)}));
  LOCKSTEP_RETURN_IF_ERROR(
      gateway->MakeTokenizerWatch(tokenizer->vocabulary().MakeDigest()));
  LOCKSTEP_RETURN_IF_ERROR(gateway->MakeDiscovery());
  LOCKSTEP_RETURN_IF_ERROR(gateway->StartHttp());
  gateway->TellMetrics();
  LOG(INFO) << "listening on port " << gateway->ports().grpc
            << ", HTTP on port " << gateway->ports().http
            << "; serving once a worker at " << WorkersOf(options)
            << " is ready";
  gateway->Enter(Phase::kConnecting, WorkersOf(options));
  gateway->FindGroups();
  return gateway;
}

absl::Status Gateway::MakeDiscovery() {
  if (options_.worker_discovery.where.empty()) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(
      discovery_,
      lockstep::MakeDiscovery(options_.worker_discovery,
                              [this](const std::vector<std::string>& all) {
                                groups_.SetAddresses(all);
                              }));
  return absl::OkStatus();
}

void Gateway::FindGroups() {
  groups_.Start([this] { OnChange(); });
  if (tokenizer_watch_ != nullptr) {
    tokenizer_watch_->Start([this] { OnChange(); });
  }
  if (discovery_ == nullptr) {
    groups_.SetAddresses(options_.workers);
  } else {
    discovery_->Start();
  }
}

Gateway::Gateway(const GatewayOptions& options, const Tokenizer* tokenizer,
                 std::unique_ptr<Security> security,
                 std::unique_ptr<AccessLog> access_log, MetricBoard* metrics,
                 std::function<void()> drain)
    : options_(options),
      metrics_(metrics),
      security_(std::move(security)),
      ledger_(std::move(access_log)),
      groups_(RoutingOf(options, *tokenizer, *security_),
              MakeRoutingPolicy(options.routing_policy).value()),
      pipeline_(options.pipeline, tokenizer, &groups_),
      service_(&pipeline_, &groups_, &security_->access(), &ledger_,
               StreamLimitsOf(options_)),
      openai_(
          &pipeline_, &groups_, &security_->access(),
          [this] { return Readiness(); }, std::move(drain)) {}

absl::Status Gateway::MakeTokenizerWatch(const Digest& vocabulary) {
  if (options_.tokenizer_address.empty()) return absl::OkStatus();
  const ClientTlsOptions& options = options_.security.tokenizer_tls;
  LOCKSTEP_ASSIGN_OR_RETURN(ClientTls tls,
                            StartClientTls(options.files, options.server_name));
  tokenizer_watch_ = std::make_unique<TokenizerWatch>(
      options_.tokenizer_address, vocabulary, std::move(tls));
  return absl::OkStatus();
}

absl::Status Gateway::StartHttp() {
  if (options_.http_listen.empty()) return absl::OkStatus();
  http::ServerOptions options;
  options.listen = options_.http_listen;
  options.threads = options_.http_threads;
  options.max_connections = options_.http_max_connections;
  options.max_connections_per_address =
      options_.security.http_max_connections_per_address;
  options.tls = security_->tls();
  options.allowed_origins = options_.security.allowed_origins;
  options.render = openai::RefusalResponse;
  options.guard = [this](const http::Request& request) {
    return openai_.Guard(request);
  };
  options.ledger = &ledger_;
  options.timeouts = options_.timeouts;
  std::vector<http::Route> routes = openai_.Routes();
  if (metrics_ != nullptr) routes.push_back(MetricsRoute(metrics_));
  LOCKSTEP_ASSIGN_OR_RETURN(http_,
                            http::Server::Start(options, std::move(routes)));
  return absl::OkStatus();
}

void Gateway::TellMetrics() {
  if (metrics_ == nullptr) return;
  canary_ = std::make_unique<CallbackCanary>(&groups_.timers());
  const GatewayMeters meters = {.groups = &groups_,
                                .pipeline = &pipeline_,
                                .access = &security_->access(),
                                .ledger = &ledger_,
                                .openai = &openai_,
                                .discovery = discovery_.get(),
                                .http = http_.get(),
                                .callback_lag = &canary_->lag()};
  told_metrics_ = metrics_->Register(
      [meters](MetricWriter& writer) { CollectGateway(meters, writer); });
}

Gateway::~Gateway() {
  if (server_ != nullptr) Stop(absl::ZeroDuration());
}

absl::Status Gateway::Readiness() const {
  LOCKSTEP_RETURN_IF_ERROR(groups_.Model().status());
  return tokenizer_watch_ == nullptr ? absl::OkStatus()
                                     : tokenizer_watch_->status();
}

void Gateway::OnChange() {
  absl::MutexLock lock(&change_mutex_);
  if (is_draining_) return;
  const absl::Status ready = Readiness();
  if (ready.ok()) {
    Enter(Phase::kReady);
  } else {
    Enter(Phase::kConnecting, ready.message());
  }
  server_->SetServing(ready.ok());
  const auto model = groups_.Model();
  if (!ready.ok() || !model.ok() || on_serving_ == nullptr) return;
  std::exchange(on_serving_, nullptr)(*model, ports());
}

void Gateway::Enter(Phase phase, absl::string_view detail) {
  if (health_ != nullptr) health_->Enter(phase, detail);
}

void Gateway::Drain() { Stop(options_.drain_timeout); }

void Gateway::Stop(absl::Duration grace) {
  const absl::Time until = RoutingNow() + grace;
  {
    absl::MutexLock lock(&change_mutex_);
    is_draining_ = true;
  }
  Enter(Phase::kDraining);
  server_->SetServing(false);
  InflightRequests& inflight = pipeline_.inflight();
  inflight.Close();
  const absl::Status why =
      MakeError(ErrorReason::kGatewayDraining,
                "the gateway is shutting down; try again at another.");
  groups_.EndWaits(why);
  openai_.SetDraining();
  if (http_ != nullptr) http_->Drain();
  if (!inflight.AwaitIdle(grace)) {
    LOG(WARNING) << "ending " << inflight.number()
                 << " requests that did not end in "
                 << absl::FormatDuration(grace);
    inflight.EndAll(why);
    inflight.AwaitIdle(kEndTimeout);
  }
  told_metrics_ = {};  // before what it asks is none any more
  canary_ = nullptr;
  // Of HTTP none is in flight any more once its answer is complete: the clients
  // have what is left of the time to read it.
  if (http_ != nullptr) {
    http_->Shutdown(
        std::max(absl::Milliseconds(kFlushMs), until - RoutingNow()));
  }
  server_->Shutdown(kFlushMs);
  // All have been told to end, and their connections are closed.
  inflight.AwaitIdle(absl::InfiniteDuration());
  if (discovery_ != nullptr) discovery_->Stop();
  if (tokenizer_watch_ != nullptr) tokenizer_watch_->Stop();
  groups_.Stop();
  http_ = nullptr;
  server_ = nullptr;
}

}  // namespace lockstep
