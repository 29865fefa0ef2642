#pragma once

#include <string>

namespace lockstep {

// Which host this process runs on, and which processes it can see there: names
// that the kernel gives both. Empty where /proc does not tell.
std::string BootId();
std::string PidNamespace();

// The host's name for people.
std::string HostName();

}  // namespace lockstep
