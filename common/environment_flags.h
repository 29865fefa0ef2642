#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

#include <string>

namespace lockstep {

// Of the flag "model" it is LOCKSTEP_MODEL.
std::string EnvironmentVariableOf(absl::string_view flag);

// Sets every gflag of this binary from its environment variable, where there is
// one. Call before gflags::ParseCommandLineFlags, so that the command line
// wins. A value that does not parse is an error that names the variable and the
// value.
absl::Status SetFlagsFromEnvironment();

// All of a binary's flags: from the environment, then from its command line. A
// word that is no flag is an error that names it.
absl::Status ParseFlags(int argc, char** argv);

}  // namespace lockstep
