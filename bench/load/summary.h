#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "bench/load/histogram.h"
#include "bench/load/load_run.h"

namespace lockstep::bench {

// What an answer must keep to be of use to who asked.
struct Slo {
  double first_token_s = 2;
  double inter_token_s = 0.2;  // on average
};

// A run in figures. Durations are of the requests that were answered.
struct Summary {
  std::string label;
  int64_t requests = 0;
  int64_t answered = 0;
  std::map<std::string, int64_t> errors;  // by status
  double offered_rate = 0;                // requests a second that were due
  double answered_rate = 0;
  double tokens_rate = 0;  // of answers, a second
  Histogram first_token;
  Histogram inter_token;
  Histogram whole;
  double goodput_rate = 0;   // requests a second that kept the SLO
  double goodput_share = 0;  // of all, those that failed among them
};

bool Keeps(const Record& record, const Slo& slo);

Summary Summarize(const LoadRun& run, const Slo& slo);
std::vector<Summary> SummarizeEach(const std::vector<LoadRun>& runs,
                                   const Slo& slo);

// A sentence.
std::string ToText(const Slo& slo);

// For people, runs beside each other. REQUIRES: there is one.
std::string ToText(const std::vector<Summary>& summaries, const Slo& slo);

// A table's rows: a name, a cell for each run and, of the second run, by how
// much it differs from the first.
std::vector<std::vector<std::string>> ToRows(
    const std::vector<Summary>& summaries);

}  // namespace lockstep::bench
