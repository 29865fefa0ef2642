#include "tests/testing/kubernetes/endpoint_slice.h"

namespace lockstep::testing {
namespace {

using ::nlohmann::json;

json ToJson(const Endpoint& endpoint) {
  json conditions = json::object();
  if (endpoint.ready.has_value()) conditions["ready"] = *endpoint.ready;
  if (endpoint.terminating.has_value()) {
    conditions["terminating"] = *endpoint.terminating;
  }
  json result = {{"addresses", json::array({endpoint.address})},
                 {"conditions", std::move(conditions)}};
  if (!endpoint.uid.empty()) {
    result["targetRef"] = {{"kind", "Pod"}, {"uid", endpoint.uid}};
  }
  return result;
}

}  // namespace

json EndpointSlice(const std::string& name, int port,
                   const std::vector<Endpoint>& endpoints) {
  json all = json::array();
  for (const Endpoint& endpoint : endpoints) all.push_back(ToJson(endpoint));
  const bool is_ipv6 = !endpoints.empty() &&
                       endpoints.front().address.find(':') != std::string::npos;
  return {{"metadata", {{"name", name}}},
          {"addressType", is_ipv6 ? "IPv6" : "IPv4"},
          {"endpoints", std::move(all)},
          {"ports", json::array({{{"name", "grpc"}, {"port", port}}})}};
}

}  // namespace lockstep::testing
