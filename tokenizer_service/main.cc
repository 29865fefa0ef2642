// The tokenizer service: flags, tokenizer, server, until SIGTERM or SIGINT.

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <cstdio>
#include <string>

#include "common/grpc_server.h"
#include "common/health/health_board.h"
#include "common/health/health_server.h"
#include "common/security/grpc_credentials.h"
#include "common/security/tls_flags.h"
#include "common/status_macros.h"
#include "common/termination_signals.h"
#include "tokenizer_service/options.h"
#include "tokenizer_service/service.h"
#include "tokenizer_service/start_tokenizer.h"

namespace lockstep {
namespace {

constexpr size_t kQueue = 1024;
constexpr int kGraceMs = 10'000;

absl::Status Serve(const TokenizerOptions& options) {
  HealthBoard health;
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto health_server,
      StartHealthServer(options.health_listen, &health,
                        {v1::Tokenizer::service_full_name()}));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto tokenizer,
      StartTokenizer(options.model, options.chat_template, &health));
  TokenizerService service(tokenizer.get(), {.threads = options.threads,
                                             .queue = {.tasks = kQueue}});
  LOCKSTEP_ASSIGN_OR_RETURN(const auto tls, StartServerTls(options.tls));
  LOCKSTEP_ASSIGN_OR_RETURN(
      const auto server,
      GrpcServer::Start(options.listen, "listen", {&service},
                        {v1::Tokenizer::service_full_name()},
                        {.max_request_bytes = kMaxTokenizerRequestBytes,
                         .credentials = MakeServerCredentials(tls.get())}));
  TerminationSignals signals({});
  server->SetServing(true);
  health.Enter(Phase::kReady);
  const std::string host = options.listen.substr(0, options.listen.rfind(':'));
  std::printf("tokenizer: serving %s on %s:%d\n", options.model.c_str(),
              host.c_str(), server->port());
  std::fflush(stdout);

  signals.AwaitFirst();
  health.Enter(Phase::kDraining);
  server->SetServing(false);
  server->Shutdown(kGraceMs);
  return absl::OkStatus();
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  google::InitGoogleLogging(argv[0]);
  FLAGS_logtostderr = true;
  const auto options = lockstep::ParseTokenizerOptions(argc, argv);
  absl::Status status = options.status();
  if (options.ok()) {
    LOG(INFO) << options->ToString();
    status = lockstep::Serve(*options);
  }
  if (status.ok()) return 0;
  std::fprintf(stderr, "tokenizer: %s\n",
               std::string(status.message()).c_str());
  return 1;
}
