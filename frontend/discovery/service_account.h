#pragma once

#include <absl/status/statusor.h>

#include <string>

namespace lockstep {

// Where the API server of the cluster is that this process runs in.
struct ApiServer {
  std::string host;  // a name or an address; of IPv6 without brackets
  std::string port;
};

// From KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, which every
// container of a Pod has. FAILED_PRECONDITION names the one that is missing.
absl::StatusOr<ApiServer> ApiServerFromEnvironment();

// Who a Pod is towards it, and whom it trusts.
struct ServiceAccount {
  std::string token;  // fit for a header field
  std::string ca;     // PEM
};

// `token` and `ca.crt` of a folder, where the kubelet puts them and, every
// hour, a new token in place of the old. FAILED_PRECONDITION names the file.
absl::StatusOr<ServiceAccount> ReadServiceAccount(const std::string& folder);

}  // namespace lockstep
