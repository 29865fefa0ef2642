#include "worker/scheduler/scheduler_options.h"

#include <absl/strings/str_cat.h>

#include <cstdint>

namespace lockstep {
namespace {

constexpr int kMaxPageSize = 256;

absl::Status AtLeast(const char* name, int64_t value, int64_t limit,
                     const char* why) {
  if (value >= limit) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      name, " is ", value, ", it must be at least ", limit, why, "."));
}

absl::Status CheckPageSize(int page_size) {
  const bool is_power_of_two =
      page_size >= 1 && (page_size & (page_size - 1)) == 0;
  if (is_power_of_two && page_size <= kMaxPageSize) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "page_size is ", page_size, ", it must be a power of two from 1 to ",
      kMaxPageSize, " tokens."));
}

// A span knows of the step before it, not of one before that.
absl::Status CheckStepsInFlight(int steps) {
  if (steps == 1 || steps == 2) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("steps_in_flight is ", steps, ", it must be 1 or 2."));
}

}  // namespace

absl::Status ValidateSchedulerOptions(const SchedulerOptions& options) {
  absl::Status status = CheckPageSize(options.page_size);
  status.Update(AtLeast("max_context", options.max_context, 2,
                        " tokens, one of the prompt and one of the output"));
  status.Update(AtLeast("max_sequences", options.max_sequences, 1, ""));
  status.Update(AtLeast("max_step_tokens", options.max_step_tokens,
                        options.max_sequences,
                        ", which is max_sequences: each running sequence "
                        "takes one token of a step"));
  status.Update(AtLeast("max_logits_rows", options.max_logits_rows,
                        options.max_sequences, ", which is max_sequences"));
  status.Update(CheckStepsInFlight(options.steps_in_flight));
  if (!status.ok()) return status;
  const int64_t needed =
      (int64_t{options.max_context} + options.page_size - 1) /
      options.page_size;
  return AtLeast("num_pages", options.num_pages, needed,
                 " so that one sequence of max_context tokens fits");
}

}  // namespace lockstep
