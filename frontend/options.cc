#include "frontend/options.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <gflags/gflags.h>

#include <algorithm>
#include <set>
#include <thread>

#include "common/flag_check.h"
#include "common/program/program_flags.h"
#include "common/status_macros.h"
#include "frontend/routing/policy/make_policy.h"

DEFINE_string(listen, "0.0.0.0:50051",
              "host:port of the gRPC server; port 0 takes a free one.");
DEFINE_int32(max_connection_age, 600,
             "Seconds, give or take a tenth, after which a gRPC connection "
             "takes no new calls, 0 to 86400; clients open another by "
             "themselves, and running calls go on. 0: it may be of any age.");
DEFINE_string(health_listen, "127.0.0.1:50054",
              "host:port of the health service, which answers from the start "
              "on; port 0 takes a free one. Empty: none.");
DEFINE_int32(metrics_port, 9090,
             "Port of /metrics, which Prometheus scrapes, 1 to 65535; 0: none. "
             "The HTTP server has it, too.");
DEFINE_string(access_log, "",
              "File to which a line of JSON is appended at each request's end; "
              "- is the standard output. Empty: none. It is opened anew on "
              "SIGHUP and when it was renamed or removed.");
DEFINE_string(http_listen, "0.0.0.0:8080",
              "host:port of the HTTP server, which answers as OpenAI's does; "
              "port 0 takes a free one, empty leaves it out.");
DEFINE_int32(http_threads, 2,
             "Threads that read from and write to HTTP connections, 1 to 64.");
DEFINE_int32(http_max_connections, 16'384,
             "HTTP connections held at once, 1 to 1000000; more are closed.");
DEFINE_string(workers, "127.0.0.1:50052",
              "host:port of the leader of each worker group, with commas.");
DEFINE_string(
    worker_discovery, "",
    "In place of --workers, each address is a worker group's leader: "
    "dns:name:port, asked for every 5 seconds, or "
    "kubernetes:namespace/service, whose EndpointSlices are watched.");
DEFINE_string(service_account, "/var/run/secrets/kubernetes.io/serviceaccount",
              "Folder of the token and the ca.crt with which the gateway asks "
              "its cluster's API server, where --worker_discovery is "
              "kubernetes:…; read again with each request.");
DEFINE_string(routing_policy, "prefix_affinity",
              "How a request's group is chosen: round_robin, least_load, "
              "prefix_hash or prefix_affinity.");
DEFINE_int32(first_token_timeout, 120,
             "Seconds for a group to send an answer's first token, 1 to 86400; "
             "then another is asked.");
DEFINE_int32(token_timeout, 60,
             "Seconds for it to send each further one, 1 to 86400.");
DEFINE_int32(request_timeout, 1800,
             "Seconds for a whole answer, 1 to 86400, unless the client's "
             "deadline is sooner.");
DEFINE_int32(
    group_wait, 5,
    "Seconds that a request, or an answer which has begun, waits for a "
    "group while there is none, 0 to 86400.");
DEFINE_int32(max_retries, 2,
             "How often a request whose answer has not begun is sent to "
             "another group, 0 to 10.");
DEFINE_int32(retry_budget_percent, 10,
             "Retries, in percent of all requests, 0 to 100.");
DEFINE_string(model, "",
              "The worker's model, for its tokenizer: a Hugging Face folder, a "
              "GGUF file, or a hub's owner/name, of which the text is "
              "downloaded.");
DEFINE_string(tokenizer_address, "",
              "host:port of a tokenizer service to use in place of --model.");
DEFINE_string(chat_template, "",
              "A file with the chat template to use in place of the model's. "
              "Not with --tokenizer_address: the service has it.");
DEFINE_int32(
    tokenizer_cache_mib, 64,
    "Memory for the tokens of what chats have in common, earlier turns "
    "and system prompts, in MiB, 0 to 65536; 0: every prompt is "
    "encoded as a whole. With --tokenizer_address there is none.");
DEFINE_string(tool_call_parser, "auto",
              "How the model writes tool calls: hermes, llama3_json, pythonic, "
              "mistral, deepseek, harmony or none; auto goes by its chat "
              "template.");
DEFINE_string(reasoning_parser, "auto",
              "How the model writes its reasoning: think, think_first, "
              "mistral, harmony or none; auto goes by its chat template.");
DEFINE_int32(encode_threads, 0,
             "Threads that render and encode prompts, 1 to 256; 0 takes half "
             "the cores, at least 2.");
DEFINE_int32(max_inflight_requests, 1024,
             "Requests held at once, 1 to 100000; more are refused.");
DEFINE_int32(max_inflight_prompt_tokens, 4 << 20,
             "Tokens of their prompts, 1 to 1000000000; more are refused, but "
             "for one alone.");
DEFINE_int32(drain_timeout, 300,
             "Seconds that running requests get after SIGTERM, 0 to 86400.");

namespace lockstep {
namespace {

constexpr int kMaxThreads = 256;
constexpr int kMaxHttpThreads = 64;
constexpr int kMaxConnections = 1'000'000;
constexpr int kMaxRequests = 100'000;
constexpr int kMaxPromptTokens = 1'000'000'000;
constexpr int kMaxSeconds = 86'400;
constexpr int kMaxRetries = 10;
constexpr int kMaxCacheMib = 65'536;

absl::Status CheckTokenizer() {
  if (FLAGS_model.empty() && FLAGS_tokenizer_address.empty()) {
    return absl::InvalidArgumentError(
        "--model is not set; name the worker's model, a Hugging Face folder, a "
        "GGUF file or a hub's owner/name, or a tokenizer service with "
        "--tokenizer_address.");
  }
  if (!FLAGS_model.empty() && !FLAGS_tokenizer_address.empty()) {
    return absl::InvalidArgumentError(
        "--model and --tokenizer_address are both set; the tokenizer is "
        "either in this process or the service's.");
  }
  if (FLAGS_tokenizer_address.empty()) return absl::OkStatus();
  if (!FLAGS_chat_template.empty()) {
    return absl::InvalidArgumentError(
        "--chat_template and --tokenizer_address are both set; give the "
        "template to the tokenizer service.");
  }
  return CheckAddressFlag("tokenizer_address", FLAGS_tokenizer_address,
                          /*least_port=*/1);
}

absl::Status CheckWorkers(const std::vector<std::string>& workers) {
  if (!FLAGS_worker_discovery.empty()) {
    return CheckDiscovery({.where = FLAGS_worker_discovery});
  }
  std::set<std::string> known;
  for (const std::string& worker : workers) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckAddressFlag("workers", worker, /*least_port=*/1));
    if (known.insert(worker).second) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--workers names ", worker, " twice."));
  }
  return absl::OkStatus();
}

absl::StatusOr<GroupSetOptions> RoutingOptionsFromFlags() {
  LOCKSTEP_RETURN_IF_ERROR(MakeRoutingPolicy(FLAGS_routing_policy).status());
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag(
      "first_token_timeout", FLAGS_first_token_timeout, 1, kMaxSeconds));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("token_timeout", FLAGS_token_timeout, 1, kMaxSeconds));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("request_timeout", FLAGS_request_timeout, 1, kMaxSeconds));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("group_wait", FLAGS_group_wait, 0, kMaxSeconds));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("max_retries", FLAGS_max_retries, 0, kMaxRetries));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("retry_budget_percent",
                                          FLAGS_retry_budget_percent, 0, 100));
  GroupSetOptions options;
  options.silence.first_token = absl::Seconds(FLAGS_first_token_timeout);
  options.silence.between_tokens = absl::Seconds(FLAGS_token_timeout);
  options.request_timeout = absl::Seconds(FLAGS_request_timeout);
  options.retry.max_retries = FLAGS_max_retries;
  options.retry.refusal_wait = options.silence.first_token;
  options.retry.group_wait = absl::Seconds(FLAGS_group_wait);
  options.retry_budget.part_of_requests = FLAGS_retry_budget_percent / 100.0;
  return options;
}

}  // namespace

std::string GatewayOptions::ToString() const {
  return absl::StrCat(
      "listen=", listen,
      " max_connection_age=", absl::FormatDuration(max_connection_age),
      " health_listen=", health_listen, " metrics_port=", metrics_port,
      " access_log=", access_log, " http_listen=", http_listen,
      " http_threads=", http_threads,
      " http_max_connections=", http_max_connections,
      " workers=", absl::StrJoin(workers, ","),
      " worker_discovery=", worker_discovery.where,
      " service_account=", worker_discovery.account_folder,
      " routing_policy=", routing_policy, " first_token_timeout=",
      absl::FormatDuration(routing.silence.first_token),
      " token_timeout=", absl::FormatDuration(routing.silence.between_tokens),
      " request_timeout=", absl::FormatDuration(routing.request_timeout),
      " group_wait=", absl::FormatDuration(routing.retry.group_wait),
      " max_retries=", routing.retry.max_retries,
      " retry_budget=", routing.retry_budget.part_of_requests, " model=", model,
      " tokenizer_address=", tokenizer_address,
      " chat_template=", chat_template,
      " tokenizer_cache_mib=", tokenizer_cache_bytes >> 20,
      " tool_call_parser=", tool_call_parser,
      " reasoning_parser=", reasoning_parser,
      " encode_threads=", pipeline.encode_threads,
      " max_inflight_requests=", pipeline.max_inflight_requests,
      " max_inflight_prompt_tokens=", pipeline.max_inflight_prompt_tokens, " ",
      security.ToString(),
      " drain_timeout=", absl::FormatDuration(drain_timeout));
}

absl::StatusOr<GatewayOptions> ParseGatewayOptions(int argc, char** argv) {
  gflags::SetUsageMessage(
      "gateway --model PATH [--listen HOST:PORT] [--workers HOST:PORT,…]");
  LOCKSTEP_RETURN_IF_ERROR(ParseProgramFlags(argc, argv));
  return GatewayOptionsFromFlags();
}

absl::StatusOr<GatewayOptions> GatewayOptionsFromFlags() {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckAddressFlag("listen", FLAGS_listen, /*least_port=*/0));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag(
      "max_connection_age", FLAGS_max_connection_age, 0, kMaxSeconds));
  if (!FLAGS_health_listen.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckAddressFlag(
        "health_listen", FLAGS_health_listen, /*least_port=*/0));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("metrics_port", FLAGS_metrics_port, 0, kMaxPort));
  if (!FLAGS_http_listen.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckAddressFlag("http_listen", FLAGS_http_listen, /*least_port=*/0));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("http_threads", FLAGS_http_threads, 1, kMaxHttpThreads));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag(
      "http_max_connections", FLAGS_http_max_connections, 1, kMaxConnections));
  const std::vector<std::string> workers = absl::StrSplit(FLAGS_workers, ',');
  LOCKSTEP_RETURN_IF_ERROR(CheckWorkers(workers));
  LOCKSTEP_ASSIGN_OR_RETURN(const GroupSetOptions routing,
                            RoutingOptionsFromFlags());
  LOCKSTEP_RETURN_IF_ERROR(CheckTokenizer());
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag(
      "tokenizer_cache_mib", FLAGS_tokenizer_cache_mib, 0, kMaxCacheMib));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("encode_threads", FLAGS_encode_threads, 0, kMaxThreads));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag(
      "max_inflight_requests", FLAGS_max_inflight_requests, 1, kMaxRequests));
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag("max_inflight_prompt_tokens",
                                          FLAGS_max_inflight_prompt_tokens, 1,
                                          kMaxPromptTokens));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckRangeFlag("drain_timeout", FLAGS_drain_timeout, 0, kMaxSeconds));
  GatewayOptions options;
  options.listen = FLAGS_listen;
  options.max_connection_age = FLAGS_max_connection_age == 0
                                   ? absl::InfiniteDuration()
                                   : absl::Seconds(FLAGS_max_connection_age);
  options.health_listen = FLAGS_health_listen;
  options.metrics_port = FLAGS_metrics_port;
  options.access_log = FLAGS_access_log;
  options.http_listen = FLAGS_http_listen;
  options.http_threads = FLAGS_http_threads;
  options.http_max_connections = FLAGS_http_max_connections;
  if (FLAGS_worker_discovery.empty()) options.workers = workers;
  options.worker_discovery = {.where = FLAGS_worker_discovery,
                              .account_folder = FLAGS_service_account};
  options.routing_policy = FLAGS_routing_policy;
  options.routing = routing;
  options.model = FLAGS_model;
  options.chat_template = FLAGS_chat_template;
  options.tokenizer_address = FLAGS_tokenizer_address;
  options.tokenizer_cache_bytes = size_t(FLAGS_tokenizer_cache_mib) << 20;
  options.tool_call_parser = FLAGS_tool_call_parser;
  options.reasoning_parser = FLAGS_reasoning_parser;
  const int cores = std::thread::hardware_concurrency();
  options.pipeline.encode_threads = FLAGS_encode_threads > 0
                                        ? FLAGS_encode_threads
                                        : std::clamp(cores / 2, 2, kMaxThreads);
  options.pipeline.max_inflight_requests = FLAGS_max_inflight_requests;
  options.pipeline.max_inflight_prompt_tokens =
      FLAGS_max_inflight_prompt_tokens;
  LOCKSTEP_ASSIGN_OR_RETURN(options.security, SecurityOptionsFromFlags());
  options.drain_timeout = absl::Seconds(FLAGS_drain_timeout);
  return options;
}

}  // namespace lockstep
