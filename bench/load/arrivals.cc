#include "bench/load/arrivals.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace lockstep::bench {
namespace {

bool ParseArrival(absl::string_view line, Arrival* arrival) {
  const std::vector<absl::string_view> cells = absl::StrSplit(line, ',');
  return cells.size() == 3 && absl::SimpleAtod(cells[0], &arrival->at_s) &&
         arrival->at_s >= 0 && arrival->at_s <= kMostSeconds &&
         absl::SimpleAtoi(cells[1], &arrival->prompt_tokens) &&
         arrival->prompt_tokens > 0 && arrival->prompt_tokens <= kMostTokens &&
         absl::SimpleAtoi(cells[2], &arrival->output_tokens) &&
         arrival->output_tokens > 0 && arrival->output_tokens <= kMostTokens;
}

}  // namespace

std::vector<Arrival> PoissonArrivals(double rate, double seconds,
                                     uint64_t seed) {
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> gap(rate);
  std::vector<Arrival> arrivals;
  for (double at = gap(random); at < seconds; at += gap(random)) {
    arrivals.push_back({.at_s = at});
  }
  return arrivals;
}

std::vector<Arrival> ConstantArrivals(double rate, double seconds) {
  std::vector<Arrival> arrivals;
  for (int i = 0; i / rate < seconds; ++i) {
    arrivals.push_back({.at_s = i / rate});
  }
  return arrivals;
}

absl::StatusOr<std::vector<Arrival>> ParseTrace(absl::string_view text,
                                                absl::string_view name) {
  std::vector<Arrival> arrivals;
  int number = 0;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    ++number;
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    if (!ParseArrival(line, &arrivals.emplace_back())) {
      return absl::InvalidArgumentError(
          absl::StrCat(name, ", line ", number, " is \"", line,
                       "\"; it should be seconds (0 to ", kMostSeconds,
                       "), prompt tokens and output tokens (1 to ", kMostTokens,
                       "), with commas between them."));
    }
  }
  std::stable_sort(
      arrivals.begin(), arrivals.end(),
      [](const Arrival& a, const Arrival& b) { return a.at_s < b.at_s; });
  return arrivals;
}

}  // namespace lockstep::bench
