#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "bench/traffic.h"

namespace lockstep::bench {

struct ServingOptions {
  std::string target;  // host:port of a gateway
  Traffic traffic;
};

// What all clients saw together.
struct ServingResult {
  double seconds = 0;  // from the first request to the last answer
  int64_t tokens = 0;  // generated
  std::vector<double> first_token_s;  // of each request, from its start
  std::vector<double> inter_token_s;  // between two messages with tokens
};

// The traffic over gRPC, each client on a connection of its own: random prompts
// of token ids, greedy, no end of text. Blocks, on one thread for all clients:
// the servers run on the same cores. A failed request is the error of the
// whole.
absl::StatusOr<ServingResult> RunServingClients(const ServingOptions& options);

}  // namespace lockstep::bench
