#pragma once

#include <absl/status/status.h>

#include <string>

namespace lockstep::bench {

// The main function of a measurement: flags as ParseFlags takes them, then
// `run`. Standard error has what is wrong, after `name`, and the result is the
// exit code.
int RunProgram(const std::string& name, const std::string& usage, int argc,
               char** argv, absl::Status (*run)());

}  // namespace lockstep::bench
