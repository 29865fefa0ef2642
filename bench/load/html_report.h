#pragma once

#include <string>
#include <vector>

#include "bench/load/load_run.h"
#include "bench/load/summary.h"

namespace lockstep::bench {

// A page of HTML that needs nothing else: the figures of the runs beside each
// other, and plots with a line for each. REQUIRES: there is a run, and a
// summary of each.
std::string ToHtml(const std::vector<LoadRun>& runs,
                   const std::vector<Summary>& summaries, const Slo& slo);

}  // namespace lockstep::bench
