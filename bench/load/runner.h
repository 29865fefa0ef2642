#pragma once

#include <vector>

#include "bench/load/arrivals.h"
#include "bench/load/dialogue.h"
#include "bench/load/load_run.h"
#include "bench/load/transport.h"

namespace lockstep::bench {

// Who asks when.
struct RunOptions {
  DialogueOptions dialogues;
  // Open: a dialogue begins with each arrival, whatever has been answered.
  std::vector<Arrival> arrivals;
  // Closed, where there are no arrivals: so many dialogues at a time, the next
  // one as soon as one has ended.
  int clients = 0;
  double seconds = 0;   // closed: none begins after it
  double warmup_s = 0;  // what was due before it is no part of the result
};

// Loads what `transport` leads to until all that began has been answered, and
// returns the records and the times between tokens. Blocks. A request that
// fails is a record; it ends its dialogue.
LoadRun RunLoad(const RunOptions& options, Transport& transport);

}  // namespace lockstep::bench
