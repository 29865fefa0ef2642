#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <string>
#include <vector>

#include "frontend/discovery/make_discovery.h"
#include "frontend/generation/pipeline.h"
#include "frontend/http/timeouts.h"
#include "frontend/routing/group_set.h"
#include "frontend/security_options.h"

namespace lockstep {

// What the binary `gateway` is told, checked.
struct GatewayOptions {
  std::string listen;                                     // host:port, of gRPC
  absl::Duration max_connection_age = absl::Minutes(10);  // of gRPC
  std::string health_listen;  // host:port; empty: none
  int metrics_port = 0;       // 0: none
  std::string access_log;     // a path, - or empty: none
  std::string http_listen;    // host:port; empty: no HTTP
  int http_threads = 2;
  int http_max_connections = 16'384;
  std::vector<std::string> workers;   // host:port of each group's leader
  DiscoveryOptions worker_discovery;  // or, set, where they are found
  std::string routing_policy = "prefix_affinity";
  GroupSetOptions routing;
  // Where text becomes tokens; exactly one is set.
  std::string model;              // in this process, of this folder or file
  std::string tokenizer_address;  // by the tokenizer service
  std::string chat_template;      // a file, before the model's; empty: none
  size_t tokenizer_cache_bytes = size_t{64} << 20;  // 0: none
  // How the answers of chats are read; see ChooseOutputFormat.
  std::string tool_call_parser = "auto";
  std::string reasoning_parser = "auto";
  PipelineOptions pipeline;
  http::Timeouts timeouts;  // of clients; no flag sets them
  SecurityOptions security;
  absl::Duration drain_timeout;

  // One line, for the log.
  std::string ToString() const;
};

// From the command line, the environment and a file: see ParseProgramFlags. The
// error is one sentence that names the flag. Sets gflags' globals, so once a
// process.
absl::StatusOr<GatewayOptions> ParseGatewayOptions(int argc, char** argv);

// The second half of it, on the flags as they are.
absl::StatusOr<GatewayOptions> GatewayOptionsFromFlags();

}  // namespace lockstep
