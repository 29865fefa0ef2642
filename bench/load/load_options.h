#pragma once

#include <absl/status/statusor.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/load/runner.h"
#include "bench/load/summary.h"

namespace lockstep::bench {

// What the binary `load` was told, checked.
struct LoadOptions {
  std::vector<std::string> compare;  // files of runs; nothing is loaded
  std::string target;                // host:port
  bool is_openai = false;
  std::string api_key;
  int connections = 4;
  RunOptions run;
  nlohmann::json given;  // the flags that make the load, for the report
  Slo slo;
  std::string label;
  std::string out;   // file of the run; empty: none
  std::string html;  // the same of the report
};

// From the flags as they are. The error is one sentence that names the flag.
absl::StatusOr<LoadOptions> LoadOptionsFromFlags();

}  // namespace lockstep::bench
