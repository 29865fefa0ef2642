#include "worker/layers/rope_table.h"

#include <cmath>
#include <numbers>

namespace lockstep {
namespace {

// Long waves are slowed down by `factor`, short ones kept, those between are
// blended.
double ScaleLlama3(const RopeConfig& config, double frequency) {
  const double wavelength = 2 * std::numbers::pi / frequency;
  const double waves = config.original_max_position / wavelength;
  if (waves < config.low_freq_factor) return frequency / config.factor;
  if (waves > config.high_freq_factor) return frequency;
  const double keep = (waves - config.low_freq_factor) /
                      (config.high_freq_factor - config.low_freq_factor);
  return (1 - keep) * frequency / config.factor + keep * frequency;
}

}  // namespace

std::vector<double> RopeFrequencies(const RopeConfig& config) {
  std::vector<double> frequencies(config.rotary_dim / 2);
  for (int i = 0; i < frequencies.size(); ++i) {
    const double frequency = std::pow(static_cast<double>(config.theta),
                                      -2.0 * i / config.rotary_dim);
    frequencies[i] = config.scaling == RopeConfig::Scaling::kLlama3
                         ? ScaleLlama3(config, frequency)
                         : frequency;
  }
  return frequencies;
}

RopeTable::RopeTable(const RopeConfig& config, int num_positions)
    : num_positions_(num_positions) {
  const std::vector<double> frequencies = RopeFrequencies(config);
  cos_.reserve(num_positions * frequencies.size());
  sin_.reserve(num_positions * frequencies.size());
  for (int position = 0; position < num_positions; ++position) {
    for (const double frequency : frequencies) {
      cos_.push_back(static_cast<float>(std::cos(position * frequency)));
      sin_.push_back(static_cast<float>(std::sin(position * frequency)));
    }
  }
}

int64_t RopeTable::Bytes(const RopeConfig& config, int num_positions) {
  return int64_t{num_positions} * config.rotary_dim *
         static_cast<int64_t>(sizeof(float));
}

}  // namespace lockstep
