#pragma once

#include <absl/status/status.h>

namespace lockstep {

// Sets every gflag of this binary from the environment variable LOCKSTEP_NAME
// (its name in capitals), where there is one. Call before
// gflags::ParseCommandLineFlags, so that the command line wins. A value that
// does not parse is an error that names the variable and the value.
absl::Status SetFlagsFromEnvironment();

// All of a binary's flags: from the environment, then from its command line. A
// word that is no flag is an error that names it.
absl::Status ParseFlags(int argc, char** argv);

}  // namespace lockstep
