#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "frontend/discovery/discovery.h"

namespace lockstep {

// Where worker groups are to be found.
struct DiscoveryOptions {
  // "dns:name:port" or "kubernetes:namespace/service"; empty: nowhere, as they
  // are known.
  std::string where = {};
  std::string account_folder = {};  // of a Pod: see ServiceAccount
};

// INVALID_ARGUMENT names the flag, its value and what it may be.
absl::Status CheckDiscovery(const DiscoveryOptions& options);

// The same error, or FAILED_PRECONDITION: this is no Pod. REQUIRES: somewhere.
absl::StatusOr<std::unique_ptr<Discovery>> MakeDiscovery(
    const DiscoveryOptions& options, Discovery::Listener listener);

}  // namespace lockstep
