#pragma once

#include <absl/status/status.h>

namespace lockstep {

// What one unit of priority is worth in steps of waiting. A constant: all ranks
// are one build, and how much more urgent a request is than others its client
// says already, by how far apart their priorities are.
inline constexpr int kStepsPerPriority = 100;

// Agreed by all ranks before the first frame.
struct SchedulerOptions {
  int num_pages = 0;          // num_pages * page_size >= max_context
  int page_size = 16;         // tokens, a power of two from 1 to 256
  int max_step_tokens = 512;  // token budget of a step, >= max_sequences
  int max_sequences = 64;     // running at once, at least 1
  int max_logits_rows = 64;   // of a step, >= max_sequences
  int max_context = 0;        // tokens of a sequence, prompt and output, >= 2
  int steps_in_flight = 1;    // planned and not committed, at most 2
  // A step that the device leaves to the host in part (NeedsHost) is committed
  // before the next one is planned.
  bool host_samples = false;
};

// INVALID_ARGUMENT naming option, value and limit if one of the bounds above
// does not hold. With them, a sequence that runs alone always goes on.
absl::Status ValidateSchedulerOptions(const SchedulerOptions& options);

}  // namespace lockstep
