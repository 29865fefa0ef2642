#pragma once

#include <absl/types/span.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <vector>

namespace lockstep {

// How often values were seen, by size, as Prometheus counts them. Observe takes
// no lock and allocates nothing, so it may stand where tokens pass and in the
// step; prometheus-cpp's own takes a mutex.
//
//   Histogram latency(kTokenLatencyBounds);
//   latency.Observe(0.020);
//
// Any thread. A Read beside an Observe may have it in the counts and not in the
// sum yet, or the other way round.
class Histogram {
 public:
  // Upper bounds, ascending, each of its own bucket; they must outlive this.
  explicit Histogram(absl::Span<const double> bounds);

  void Observe(double value);
  void Observe(std::chrono::steady_clock::duration value) {
    Observe(std::chrono::duration<double>(value).count());
  }

  struct Snapshot {
    std::vector<uint64_t> counts;  // a bucket each; the last: above all bounds
    double sum = 0;
  };
  Snapshot Read() const;

  absl::Span<const double> bounds() const { return bounds_; }

 private:
  const absl::Span<const double> bounds_;
  std::vector<std::atomic<uint64_t>> counts_;
  std::atomic<double> sum_ = 0;
};

// vLLM's bounds, so that what is computed from its histograms can be computed
// from these. Seconds, but for the last.
inline constexpr double kFirstTokenBounds[] = {
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75,
    1,     2.5,   5,    7.5,  10,   20,   40,   80,  160,  640, 2560};
inline constexpr double kTokenBounds[] = {
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
    0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80};
inline constexpr double kRequestBounds[] = {
    0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
    30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680};
inline constexpr double kNumTokensBounds[] = {
    1,   2,    5,    10,   20,    50,    100,   200,
    500, 1000, 2000, 5000, 10000, 20000, 50000, 100000};

// What takes microseconds when all is well.
inline constexpr double kShortBounds[] = {
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025,
    0.05,   0.1,     0.25,   0.5,   1,      2.5,   5,    10};

}  // namespace lockstep
