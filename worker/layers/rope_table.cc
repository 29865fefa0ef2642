#include "worker/layers/rope_table.h"

#include <algorithm>
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

// The pair, as a real number, that turns so many times in the original context.
double YarnPair(const RopeConfig& config, double turns) {
  return config.rotary_dim *
         std::log(config.original_max_position /
                  (turns * 2 * std::numbers::pi)) /
         (2 * std::log(static_cast<double>(config.theta)));
}

// Pairs up to `low` are kept, those from `high` on slowed down by `factor`.
double ScaleYarn(const RopeConfig& config, int pair, double frequency) {
  const double low =
      std::max(std::floor(YarnPair(config, config.beta_fast)), 0.0);
  double high = std::min(std::ceil(YarnPair(config, config.beta_slow)),
                         config.rotary_dim - 1.0);
  if (high == low) high += 0.001;
  const double slow = std::clamp((pair - low) / (high - low), 0.0, 1.0);
  return slow * frequency / config.factor + (1 - slow) * frequency;
}

// Theta; of kDynamic larger, for sequences past the original context.
double Theta(const RopeConfig& config) {
  const double theta = config.theta;
  if (config.scaling != RopeConfig::Scaling::kDynamic ||
      config.longest_sequence <= config.original_max_position) {
    return theta;
  }
  const double growth = static_cast<double>(config.longest_sequence) /
                        config.original_max_position;
  return theta * std::pow(config.factor * growth - (config.factor - 1),
                          config.rotary_dim / (config.rotary_dim - 2.0));
}

double Scale(const RopeConfig& config, int pair, double frequency) {
  switch (config.scaling) {
    case RopeConfig::Scaling::kNone:
    case RopeConfig::Scaling::kDynamic:
      return frequency;
    case RopeConfig::Scaling::kLinear:
      return frequency / config.factor;
    case RopeConfig::Scaling::kLlama3:
      return ScaleLlama3(config, frequency);
    case RopeConfig::Scaling::kYarn:
      return ScaleYarn(config, pair, frequency);
    case RopeConfig::Scaling::kLongRope:
      return frequency / config.factors[pair];
  }
  return frequency;
}

}  // namespace

std::vector<double> RopeFrequencies(const RopeConfig& config) {
  std::vector<double> frequencies(config.rotary_dim / 2);
  const double theta = Theta(config);
  for (int i = 0; i < frequencies.size(); ++i) {
    frequencies[i] =
        Scale(config, i, std::pow(theta, -2.0 * i / config.rotary_dim));
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
      const double angle = position * frequency;
      const double factor = config.attention_factor;
      cos_.push_back(static_cast<float>(std::cos(angle) * factor));
      sin_.push_back(static_cast<float>(std::sin(angle) * factor));
    }
  }
}

int64_t RopeTable::Bytes(const RopeConfig& config, int num_positions) {
  return int64_t{num_positions} * config.rotary_dim *
         static_cast<int64_t>(sizeof(float));
}

}  // namespace lockstep
