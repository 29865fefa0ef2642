#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/serving/serving_clients.h"
#include "bench/traffic.h"
#include "bench/workload_runner.h"

namespace lockstep::bench {

// What a serving bench found: runs over gRPC, and of the engine alone with the
// same traffic. Either may be missing.
struct ServingReport {
  Traffic traffic;
  std::vector<ServingResult> served;
  std::vector<RunResult> engine;
};

// For people: a line each.
std::string ToText(const ServingReport& report);

// For scripts; docs/benchmarks.md has its fields.
nlohmann::json ToJson(const ServingReport& report);

}  // namespace lockstep::bench
