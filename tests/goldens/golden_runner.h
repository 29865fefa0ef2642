#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <compare>
#include <cstdint>
#include <functional>
#include <vector>

#include "tests/goldens/golden_case.h"
#include "worker/engine/engine.h"
#include "worker/engine/model_engine.h"
#include "worker/runtime/numerics.h"
#include "worker/scheduler/scheduler_options.h"
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

// How a model is cut.
struct GroupCut {
  int size = 1;  // ranks
  bool expert_parallel = false;

  auto operator<=>(const GroupCut&) const = default;
};

// Serves the prompts as such a worker group would, ranks as threads: all at
// once, through the scheduler, in chunks, greedily, never stopping at the end
// of text.
absl::StatusOr<std::vector<GoldenAnswer>> AnswerPrompts(
    const ModelFiles& model, const GroupCut& cut, const Numerics& numerics,
    absl::Span<const GoldenPrompt> prompts);

// The steps of that, which the engine of another kind of group has to take.
SchedulerOptions StepsOf(const ModelConfig& config,
                         absl::Span<const GoldenPrompt> prompts);

// The same by such an engine; `show` sets who sees its logits. Without it
// answers have tokens alone, and two steps may be in flight.
absl::StatusOr<std::vector<GoldenAnswer>> AnswerWith(
    Engine* engine,
    const std::function<void(ModelEngine::LogitsObserver)>& show,
    const SchedulerOptions& steps, absl::Span<const GoldenPrompt> prompts);

}  // namespace lockstep::goldens
