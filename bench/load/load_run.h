#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/load/histogram.h"

namespace lockstep::bench {

// One request. Times are seconds from the start of the run.
struct Record {
  double due_s = 0;     // when somebody wanted to send it
  double first_s = -1;  // its first token; negative: none came
  double end_s = 0;
  int prompt_tokens = 0;
  int tokens = 0;          // of the answer
  std::string error = "";  // the name of its status; empty: it was answered

  bool ok() const { return error.empty(); }
  // From when it was due, not from when it was sent: a server, or a client,
  // that stalls delays all who come meanwhile, and not one alone.
  double first_token_s() const { return first_s - due_s; }
  double whole_s() const { return end_s - due_s; }
  // On average; 0 of a single token.
  double inter_token_s() const {
    return tokens > 1 ? (end_s - first_s) / (tokens - 1) : 0;
  }
};

// What a run was and what came of it: as a file, JSON.
struct LoadRun {
  std::string label;
  nlohmann::json options = nlohmann::json::object();  // as they were given
  double seconds = 0;                                 // until the last answer
  std::vector<Record> records;  // in the order in which they were due
  // Between two messages with tokens, of all answers.
  Histogram inter_token;
};

nlohmann::json ToJson(const LoadRun& run);

// INVALID_ARGUMENT names `name` and what is wrong.
absl::StatusOr<LoadRun> ParseRun(absl::string_view text,
                                 const std::string& name);

}  // namespace lockstep::bench
