#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace lockstep::testing {

// Why `value` does not satisfy `schema`, with the place; empty if it does. Of
// JSON schema it knows what RandomSchema draws, and ends the program at a
// keyword that it does not.
std::string WhyNotOfSchema(const nlohmann::json& schema,
                           const nlohmann::json& value,
                           const std::string& place = "$");

}  // namespace lockstep::testing
