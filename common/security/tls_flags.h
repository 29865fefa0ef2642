#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "common/security/tls_identity.h"

namespace lockstep {

// --tls_certificate, --tls_key and --tls_client_ca of the binary that links
// this: of its servers. Paths are empty where there is to be no TLS.
// INVALID_ARGUMENT names what is set without what it needs.
absl::StatusOr<TlsFiles> ServerTlsFilesFromFlags();

// For the log: whether there is TLS, and for whom; paths only.
std::string ToString(const TlsFiles& files);

// What a server shows: null where `files` are those of none.
absl::StatusOr<std::unique_ptr<TlsIdentity>> StartServerTls(
    const TlsFiles& files);

// INVALID_ARGUMENT unless both files are set, or none.
absl::Status CheckPairFlags(const NamedFile& certificate, const NamedFile& key);

}  // namespace lockstep
