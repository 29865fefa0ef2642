#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/ceilings.h"
#include "bench/load_time.h"
#include "bench/spread.h"
#include "bench/workload_runner.h"

namespace lockstep::bench {

// All runs of one workload, and the rival's between them.
struct EngineRow {
  std::string workload;
  std::vector<RunResult> runs;
  std::vector<double> rival_tokens_per_s;
  std::string skipped;  // why there are no runs
};

// What an engine bench found.
struct EngineReport {
  Ceilings ceilings;
  std::string model;        // path
  std::string description;  // the rank's line
  double weight_bytes = 0;  // as stored
  double kv_position_bytes = 0;
  std::vector<LoadResult> loads;
  std::vector<EngineRow> rows;
};

// For people: a table, a line a workload.
std::string ToText(const EngineReport& report);

// For scripts; docs/benchmarks.md has its fields.
nlohmann::json ToJson(const EngineReport& report);

nlohmann::json ToJson(const Ceilings& ceilings);

}  // namespace lockstep::bench
