#pragma once

#include <nlohmann/json.hpp>
#include <random>

namespace lockstep::testing {

// A JSON schema of at most `depth` levels, all of whose values are short.
nlohmann::json RandomSchema(std::mt19937& random, int depth);

}  // namespace lockstep::testing
