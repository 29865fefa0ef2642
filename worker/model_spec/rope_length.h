#pragma once

#include "worker/model_spec/model_config.h"

namespace lockstep {

// Rope whose frequencies follow the length of a sequence (kDynamic, kLongRope).
// In Hugging Face's implementation all of them change when a sequence grows,
// and whatever is cached is of no use any more. Here keys are rotated once, and
// a prefix is shared by sequences of any length: so such a rope is fixed, for
// the longest sequence that there may be.

bool FollowsLength(const RopeConfig& rope);

// Fixes config->rope, where it follows the length, for sequences of up to
// `max_context` tokens; 0: of as many as the model was trained with. Up to that
// many its frequencies are those of training and config->max_context is brought
// down to it; above, at every position, those of long sequences.
void FixRope(int max_context, ModelConfig* config);

}  // namespace lockstep
