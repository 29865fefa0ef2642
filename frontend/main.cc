// The gateway: flags, tokenizer, server, until SIGTERM or SIGINT.

#include <absl/status/status.h>
#include <absl/strings/str_join.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>
#include <glog/logging.h>
#include <malloc.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "common/health/health_board.h"
#include "common/health/health_server.h"
#include "common/metrics/metric_board.h"
#include "common/metrics/metric_writer.h"
#include "common/metrics/program_metrics.h"
#include "common/program/version.h"
#include "common/security/grpc_credentials.h"
#include "common/status_macros.h"
#include "common/termination_signals.h"
#include "frontend/gateway.h"
#include "frontend/gateway_metrics.h"
#include "frontend/options.h"
#include "proto/inference.grpc.pb.h"
#include "tokenizer_service/caching/caching_tokenizer.h"
#include "tokenizer_service/remote_tokenizer.h"
#include "tokenizer_service/start_tokenizer.h"

namespace lockstep {
namespace {

constexpr absl::Duration kTokenizerTimeout = absl::Seconds(60);

// In this process; `cache` is set where it has one.
absl::StatusOr<std::unique_ptr<Tokenizer>> MakeOwnTokenizer(
    const GatewayOptions& options, HealthBoard& health,
    const CachingTokenizer** cache) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      auto tokenizer,
      StartTokenizer(options.model, options.chat_template, &health));
  if (options.tokenizer_cache_bytes == 0) return tokenizer;
  auto caching = std::make_unique<CachingTokenizer>(
      std::move(tokenizer), options.tokenizer_cache_bytes);
  LOG(INFO) << "the tokens of chats are kept, cut behind "
            << absl::StrJoin(caching->cuts().tokens(), ", ");
  *cache = caching.get();
  return caching;
}

absl::StatusOr<std::unique_ptr<Tokenizer>> MakeTokenizer(
    const GatewayOptions& options, HealthBoard& health,
    const CachingTokenizer** cache) {
  if (options.tokenizer_address.empty()) {
    return MakeOwnTokenizer(options, health, cache);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      const ClientTls tls,
      StartClientTls(options.security.tokenizer_tls.files,
                     options.security.tokenizer_tls.server_name));
  return RemoteTokenizer::Connect(options.tokenizer_address, kTokenizerTimeout,
                                  tls);
}

// Blocks from this size on go back to the system when they are freed, and so
// does the top of the heap: a gateway holds large requests for moments, on many
// threads. glibc would else raise the size with each block that it frees.
constexpr int kReturnedBytes = 256 << 10;

void ReturnFreedMemory() {
  mallopt(M_MMAP_THRESHOLD, kReturnedBytes);
  mallopt(M_TRIM_THRESHOLD, kReturnedBytes);
}

std::string HostOf(const std::string& address) {
  return address.substr(0, address.rfind(':'));
}

absl::Status Serve(const GatewayOptions& options) {
  HealthBoard health;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto health_server,
      StartHealthServer(options.health_listen, &health,
                        {v1::Inference::service_full_name()}));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto metrics,
      ProgramMetrics::Start({.program = "gateway",
                             .version = kVersion,
                             .table = GatewayMetrics(),
                             .health = &health,
                             .port = options.metrics_port}));
  health.Enter(Phase::kLoading, "the tokenizer");
  const CachingTokenizer* cache = nullptr;
  LOCKSTEP_ASSIGN_OR_RETURN(const auto tokenizer,
                            MakeTokenizer(options, health, &cache));
  const MetricBoard::Registration told_cache =
      metrics->board()->Register([cache](MetricWriter& writer) {
        if (cache != nullptr) CollectTokenizerCache(*cache, writer);
      });
  TerminationSignals signals({});
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto gateway,
      Gateway::Start(
          options, tokenizer.get(),
          [&](const ServedModel& model, Gateway::Ports ports) {
            if (ports.http != 0) {
              std::printf("gateway: HTTP on %s:%d\n",
                          HostOf(options.http_listen).c_str(), ports.http);
            }
            std::printf("gateway: serving %s on %s:%d\n", model.name.c_str(),
                        HostOf(options.listen).c_str(), ports.grpc);
            std::fflush(stdout);
          },
          &health, metrics->board(),
          [&signals] {
            LOG(INFO) << "a client asks to drain";
            signals.Begin();
          }));
  signals.AwaitFirst();
  gateway->Drain();
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  lockstep::ReturnFreedMemory();
  // Where Abseil was built for debugging, as Debian's is, every lock looks for
  // cycles of locks, under one lock of the whole process.
  absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
  google::InitGoogleLogging(argv[0]);
  FLAGS_logtostderr = true;
  const auto options = lockstep::ParseGatewayOptions(argc, argv);
  absl::Status status = options.status();
  if (options.ok()) {
    LOG(INFO) << options->ToString();
    status = lockstep::Serve(*options);
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "gateway: %s\n", std::string(status.message()).c_str());
  return 1;
}
