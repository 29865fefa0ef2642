#include "frontend/options.h"

#include <absl/strings/str_cat.h>
#include <gflags/gflags.h>

#include <algorithm>
#include <thread>

#include "common/environment_flags.h"
#include "common/flag_check.h"
#include "common/status_macros.h"

DEFINE_string(listen, "0.0.0.0:50051",
              "host:port of the gRPC server; port 0 takes a free one.");
DEFINE_string(health_listen, "127.0.0.1:50054",
              "host:port of the health service, which answers from the start "
              "on; port 0 takes a free one. Empty: none.");
DEFINE_string(http_listen, "0.0.0.0:8080",
              "host:port of the HTTP server, which answers as OpenAI's does; "
              "port 0 takes a free one, empty leaves it out.");
DEFINE_int32(http_threads, 2,
             "Threads that read from and write to HTTP connections, 1 to 64.");
DEFINE_int32(http_max_connections, 16'384,
             "HTTP connections held at once, 1 to 1000000; more are closed.");
DEFINE_string(worker_address, "127.0.0.1:50052",
              "host:port of the worker group's leader.");
DEFINE_string(model, "",
              "The worker's model, for its tokenizer: a Hugging Face folder or "
              "a GGUF file.");
DEFINE_string(tokenizer_address, "",
              "host:port of a tokenizer service to use in place of --model.");
DEFINE_int32(encode_threads, 0,
             "Threads that render and encode prompts, 1 to 256; 0 takes half "
             "the cores, at least 2.");
DEFINE_int32(max_inflight_requests, 1024,
             "Requests held at once, 1 to 100000; more are refused.");
DEFINE_int32(drain_timeout, 30,
             "Seconds that running requests get after SIGTERM, 0 to 86400.");

namespace lockstep {
namespace {

constexpr int kMaxThreads = 256;
constexpr int kMaxHttpThreads = 64;
constexpr int kMaxConnections = 1'000'000;
constexpr int kMaxRequests = 100'000;
constexpr int kMaxDrainSeconds = 86'400;

absl::Status CheckTokenizer() {
  if (FLAGS_model.empty() && FLAGS_tokenizer_address.empty()) {
    return absl::InvalidArgumentError(
        "--model is not set; name the worker's model, a Hugging Face folder or "
        "a GGUF file, or a tokenizer service with --tokenizer_address.");
  }
  if (!FLAGS_model.empty() && !FLAGS_tokenizer_address.empty()) {
    return absl::InvalidArgumentError(
        "--model and --tokenizer_address are both set; the tokenizer is "
        "either in this process or the service's.");
  }
  if (FLAGS_tokenizer_address.empty()) return absl::OkStatus();
  return CheckAddressFlag("tokenizer_address", FLAGS_tokenizer_address,
                          /*least_port=*/1);
}

}  // namespace

std::string GatewayOptions::ToString() const {
  return absl::StrCat("listen=", listen, " health_listen=", health_listen,
                      " http_listen=", http_listen,
                      " http_threads=", http_threads,
                      " http_max_connections=", http_max_connections,
                      " worker_address=", worker_address, " model=", model,
                      " tokenizer_address=", tokenizer_address,
                      " encode_threads=", pipeline.encode_threads,
                      " max_inflight_requests=", pipeline.max_inflight_requests,
                      " drain_timeout=", absl::FormatDuration(drain_timeout));
}

absl::StatusOr<GatewayOptions> ParseGatewayOptions(int argc, char** argv) {
  gflags::SetUsageMessage(
      "gateway --model PATH [--listen HOST:PORT] [--worker_address HOST:PORT]");
  LOCKSTEP_RETURN_IF_ERROR(ParseFlags(argc, argv));
  return GatewayOptionsFromFlags();
}

absl::StatusOr<GatewayOptions> GatewayOptionsFromFlags() {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckAddressFlag("listen", FLAGS_listen, /*least_port=*/0));
  if (!FLAGS_health_listen.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckAddressFlag(
        "health_listen", FLAGS_health_listen, /*least_port=*/0));
  }
  if (!FLAGS_http_listen.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckAddressFlag("http_listen", FLAGS_http_listen, /*least_port=*/0));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("http_threads", FLAGS_http_threads, 1, kMaxHttpThreads));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag(
      "http_max_connections", FLAGS_http_max_connections, 1, kMaxConnections));
  LOCKSTEP_RETURN_IF_ERROR(CheckAddressFlag(
      "worker_address", FLAGS_worker_address, /*least_port=*/1));
  LOCKSTEP_RETURN_IF_ERROR(CheckTokenizer());
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("encode_threads", FLAGS_encode_threads, 0, kMaxThreads));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag(
      "max_inflight_requests", FLAGS_max_inflight_requests, 1, kMaxRequests));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("drain_timeout", FLAGS_drain_timeout,
                                          0, kMaxDrainSeconds));
  GatewayOptions options;
  options.listen = FLAGS_listen;
  options.health_listen = FLAGS_health_listen;
  options.http_listen = FLAGS_http_listen;
  options.http_threads = FLAGS_http_threads;
  options.http_max_connections = FLAGS_http_max_connections;
  options.worker_address = FLAGS_worker_address;
  options.model = FLAGS_model;
  options.tokenizer_address = FLAGS_tokenizer_address;
  const int cores = std::thread::hardware_concurrency();
  options.pipeline.encode_threads = FLAGS_encode_threads > 0
                                        ? FLAGS_encode_threads
                                        : std::clamp(cores / 2, 2, kMaxThreads);
  options.pipeline.max_inflight_requests = FLAGS_max_inflight_requests;
  options.drain_timeout = absl::Seconds(FLAGS_drain_timeout);
  return options;
}

}  // namespace lockstep
