#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <vector>

#include "proto/group.pb.h"
#include "proto/sampling.pb.h"

namespace lockstep {

struct SamplingLimits {
  uint32_t vocabulary_size = 0;
  uint32_t max_output_tokens = 0;  // the rest of the context, at least 1
  std::vector<uint32_t> eos_token_ids;
  // Of what a request does not set; what this does not either has those of
  // sampling.proto. Its max_tokens gives way to the rest of the context.
  v1::SamplingParams defaults = {};
};

// Every default filled in, every bound of sampling.proto checked:
// INVALID_ARGUMENT names field ("sampling.top_p"), value and limit.
// `drawn_seed` is used where `params` has none. A max_tokens beyond
// max_output_tokens is the caller's to judge: it knows the prompt.
absl::StatusOr<v1::ResolvedSampling> ResolveSampling(
    const v1::SamplingParams& params, const SamplingLimits& limits,
    uint64_t drawn_seed);

}  // namespace lockstep
