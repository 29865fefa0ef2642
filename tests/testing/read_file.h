#pragma once

#include <string>

namespace lockstep::testing {

// What is in a file; empty where there is none.
std::string ReadFile(const std::string& path);

}  // namespace lockstep::testing
