#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::testing {

struct Endpoint {
  std::string address;
  std::string uid = {};              // of its Pod; empty: it is none's
  std::optional<bool> ready = true;  // none: nobody says
  std::optional<bool> terminating = {};
};

// As an API server has it, at one port called grpc; IPv6 where the first
// address is.
nlohmann::json EndpointSlice(const std::string& name, int port,
                             const std::vector<Endpoint>& endpoints);

}  // namespace lockstep::testing
