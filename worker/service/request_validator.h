#pragma once

#include <absl/status/statusor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "proto/group.pb.h"
#include "proto/worker.pb.h"

namespace lockstep {

// What a request is measured against; fixed once the group has formed.
struct RequestLimits {
  int vocabulary_size = 0;
  int max_context = 0;  // tokens of a sequence, prompt and output
  std::vector<uint32_t> eos_token_ids;
  v1::SamplingParams sampling_defaults = {};  // the model's own
  // Of the model; none, for this reason.
  std::optional<v1::EmbeddingInfo> embedding = std::nullopt;
  std::string no_embedding = {};
  std::string no_generation = {};  // empty: it generates
};

// A request with every default filled in, but for the numbers `request` and
// `grammar`, which stay 0. A pure function; any thread.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(v1::AddRequest add,
//                             ValidateRequest(request, limits, seed));
//
// `drawn_seed` is used where the request names none. INVALID_ARGUMENT names
// field, value and limit; nothing is clamped, and a field or value this build
// does not know is refused. UNIMPLEMENTED for an embedding or an answer that
// the model does not make.
absl::StatusOr<v1::AddRequest> ValidateRequest(
    const v1::WorkerGenerateRequest& request, const RequestLimits& limits,
    uint64_t drawn_seed);

// INVALID_ARGUMENT in the same way. Whether a request is live, and has the
// choices, is not checked here.
absl::Status ValidateAbort(const v1::AbortRequest& request);

}  // namespace lockstep
