#pragma once

#include <atomic>
#include <cstdint>

#include "common/metrics/histogram.h"

namespace lockstep {

// What the requests of clients were like, since the start. Each member counts
// by itself and takes no lock: streams write them as they are told, whoever
// scrapes reads them. Durations are in seconds, as the group saw them.
struct RequestMeters {
  // Of requests: from their arrival to their first step, from there to the
  // first token, from there to the last.
  Histogram queued{kRequestBounds};
  Histogram prefill{kRequestBounds};
  Histogram decode{kRequestBounds};
  Histogram computed{kRequestBounds};        // the last two together
  Histogram total{kRequestBounds};           // from the arrival to the end
  Histogram first_token{kFirstTokenBounds};  // from the arrival
  Histogram prompt_tokens{kNumTokensBounds};

  // Of choices.
  Histogram token{kTokenBounds};       // from one to the next
  Histogram mean_token{kTokenBounds};  // the same, averaged over a choice
  Histogram generated_tokens{kNumTokensBounds};

  // Of all.
  std::atomic<uint64_t> prompted = 0;   // tokens
  std::atomic<uint64_t> cached = 0;     // of those
  std::atomic<uint64_t> generated = 0;  // tokens
  std::atomic<uint64_t> stopped = 0;    // choices, by their finish reason
  std::atomic<uint64_t> cut = 0;
  std::atomic<uint64_t> aborted = 0;
};

}  // namespace lockstep
