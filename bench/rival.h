#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

namespace lockstep::bench {

// Runs a rival's benchmark: `command` in a shell, with {workload} and {model}
// replaced. It prints one number, tokens a second; its standard error is shown.
// INVALID_ARGUMENT has the command and what it printed instead, or its exit
// status. Blocks.
absl::StatusOr<double> RunRival(absl::string_view command,
                                absl::string_view workload,
                                absl::string_view model);

}  // namespace lockstep::bench
