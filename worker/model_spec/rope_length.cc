#include "worker/model_spec/rope_length.h"

#include <algorithm>
#include <utility>

namespace lockstep {

bool FollowsLength(const RopeConfig& rope) {
  return rope.scaling == RopeConfig::Scaling::kDynamic ||
         rope.scaling == RopeConfig::Scaling::kLongRope;
}

void FixRope(int max_context, ModelConfig* config) {
  RopeConfig& rope = config->rope;
  if (!FollowsLength(rope)) return;
  if (max_context <= rope.original_max_position) {
    config->max_context =
        std::min(config->max_context, rope.original_max_position);
  } else if (rope.scaling == RopeConfig::Scaling::kLongRope) {
    rope.factors = rope.long_factors;
  } else {
    rope.longest_sequence = std::min(max_context, config->max_context);
  }
}

}  // namespace lockstep
