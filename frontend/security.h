#pragma once

#include <absl/status/statusor.h>

#include <memory>

#include "common/security/file_watch.h"
#include "common/security/grpc_credentials.h"
#include "common/security/tls_identity.h"
#include "frontend/access/access_control.h"
#include "frontend/security_options.h"

namespace lockstep {

// What guards a gateway, read from files and read again when they change.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto security, Security::Start(options));
//   InferenceService service(&pipeline, &groups, &security->access());
//
// Outlives whatever it guards. Any thread.
class Security {
 public:
  // A file that is no good is one sentence that names its flag.
  static absl::StatusOr<std::unique_ptr<Security>> Start(
      const SecurityOptions& options);

  const AccessControl& access() const { return access_; }
  // Of both servers; null: without TLS.
  const TlsIdentity* tls() const { return tls_.get(); }
  const ClientTls& worker_tls() const { return worker_tls_; }

 private:
  Security() = default;

  AccessControl access_;
  std::unique_ptr<FileWatch> keys_;  // tells access_
  std::unique_ptr<TlsIdentity> tls_;
  ClientTls worker_tls_;
};

}  // namespace lockstep
