#pragma once

#include <absl/status/statusor.h>

#include <string>
#include <vector>

#include "common/security/tls_identity.h"

namespace lockstep {

// Of a client within the gateway; no `ca`: no TLS.
struct ClientTlsOptions {
  TlsFiles files;
  std::string server_name;  // empty: that of the address
};

// Who may talk to the gateway, and how it talks to others, as it is told;
// docs/security.md.
struct SecurityOptions {
  std::string api_keys_file;  // empty: no key is needed
  std::vector<std::string> allowed_origins;
  int http_max_connections_per_address = 0;  // 0: as many as in all
  TlsFiles tls;                              // of both servers
  ClientTlsOptions worker_tls;
  ClientTlsOptions tokenizer_tls;

  // As a part of one line, for the log.
  std::string ToString() const;
};

// The error is one sentence that names the flag.
absl::StatusOr<SecurityOptions> SecurityOptionsFromFlags();

}  // namespace lockstep
