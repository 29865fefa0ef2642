#pragma once

#include <cstdint>
#include <vector>

#include "worker/model_spec/model_config.h"

namespace lockstep {

// Cosines and sines of a rotary position embedding, times its attention_factor,
// for every position a sequence can have. Computed in double, kept in fp32.
// Immutable.
class RopeTable {
 public:
  RopeTable(const RopeConfig& config, int num_positions);

  // Of a table of so many positions.
  static int64_t Bytes(const RopeConfig& config, int num_positions);

  const float* cos() const { return cos_.data(); }
  const float* sin() const { return sin_.data(); }
  int num_positions() const { return num_positions_; }

 private:
  const int num_positions_;
  std::vector<float> cos_;  // [num_positions, rotary_dim / 2]
  std::vector<float> sin_;  // the same
};

// Radians a position, of each pair: theta^(-2i / rotary_dim), scaled as
// `config` says, which FixRope has fixed. Each scaling follows Hugging Face's
// function _compute_…_parameters.
std::vector<double> RopeFrequencies(const RopeConfig& config);

}  // namespace lockstep
