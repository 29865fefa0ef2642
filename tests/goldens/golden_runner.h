#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <vector>

#include "tests/goldens/golden_case.h"
#include "worker/runtime/numerics.h"
#include "worker/weights/model_files.h"

namespace lockstep::goldens {

// What the engine makes of a GoldenPrompt.
struct GoldenAnswer {
  // Of the last positions of the prompt, the last one at the end: as many as
  // the reference has, or one.
  std::vector<std::vector<float>> logits;
  std::vector<uint32_t> tokens;  // as many as the prompt's `greedy` has

  bool operator==(const GoldenAnswer&) const = default;
};

// Serves the prompts as a worker group of `size` ranks would, ranks as threads:
// all at once, through the scheduler, in chunks, greedily, never stopping at
// the end of text.
absl::StatusOr<std::vector<GoldenAnswer>> AnswerPrompts(
    const ModelFiles& model, int size, const Numerics& numerics,
    absl::Span<const GoldenPrompt> prompts);

}  // namespace lockstep::goldens
