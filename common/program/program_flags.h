#pragma once

#include <absl/status/status.h>

namespace lockstep {

// Sets the gflags of a server, each from the first of these that has it: the
// command line, the environment variable LOCKSTEP_NAME (its name in capitals),
// the file of --config. An error is one sentence that names the word, the
// variable, or the file and its line.
//
// With --print_config it prints all flags in force, as such a file, with where
// each came from, and ends the process; so do gflags' own, such as --help.
absl::Status ParseProgramFlags(int argc, char** argv);

}  // namespace lockstep
