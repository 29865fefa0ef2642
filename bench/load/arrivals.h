#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <vector>

namespace lockstep::bench {

// Of a prompt or an answer, and of a run.
inline constexpr int kMostTokens = 1 << 20;
inline constexpr double kMostSeconds = 86'400;

// When somebody comes, in seconds from the start, and with what, where a trace
// says it.
struct Arrival {
  double at_s = 0;
  int prompt_tokens = 0;  // 0: as drawn
  int output_tokens = 0;  // the same
};

// Everybody at random and independently, `rate` a second on average.
std::vector<Arrival> PoissonArrivals(double rate, double seconds,
                                     uint64_t seed);

// One after the other, evenly.
std::vector<Arrival> ConstantArrivals(double rate, double seconds);

// A line each: seconds,prompt_tokens,output_tokens; in any order, empty lines
// and those from a # on left out. INVALID_ARGUMENT names `name` and the line.
absl::StatusOr<std::vector<Arrival>> ParseTrace(absl::string_view text,
                                                absl::string_view name);

}  // namespace lockstep::bench
