#include "common/security/tls_flags.h"

#include <absl/strings/str_cat.h>
#include <gflags/gflags.h>

#include "common/status_macros.h"

DEFINE_string(tls_certificate, "",
              "PEM file of the certificate that the server shows, with its "
              "chain; empty: no TLS. Read again when it changes.");
DEFINE_string(tls_key, "", "PEM file of the private key of --tls_certificate.");
DEFINE_string(tls_client_ca, "",
              "PEM file of the CAs that a client's certificate must be of; "
              "empty: clients need none.");

namespace lockstep {

absl::Status CheckPairFlags(const NamedFile& certificate,
                            const NamedFile& key) {
  if (certificate.path.empty() == key.path.empty()) return absl::OkStatus();
  const bool lacks_key = key.path.empty();
  return absl::InvalidArgumentError(
      absl::StrCat("--", lacks_key ? certificate.flag : key.flag,
                   " is set and --", lacks_key ? key.flag : certificate.flag,
                   " is not; a certificate and its key go together."));
}

absl::StatusOr<TlsFiles> ServerTlsFilesFromFlags() {
  TlsFiles files = {.certificate = {"tls_certificate", FLAGS_tls_certificate},
                    .key = {"tls_key", FLAGS_tls_key},
                    .ca = {"tls_client_ca", FLAGS_tls_client_ca}};
  LOCKSTEP_RETURN_IF_ERROR(CheckPairFlags(files.certificate, files.key));
  if (!files.ca.path.empty() && files.certificate.path.empty()) {
    return absl::InvalidArgumentError(
        "--tls_client_ca is set and --tls_certificate is not; without TLS no "
        "client can show a certificate.");
  }
  return files;
}

std::string ToString(const TlsFiles& files) {
  if (files.certificate.path.empty() && files.ca.path.empty()) return "none";
  return absl::StrCat(files.certificate.path, ",", files.ca.path);
}

absl::StatusOr<std::unique_ptr<TlsIdentity>> StartServerTls(
    const TlsFiles& files) {
  if (files.certificate.path.empty()) return nullptr;
  return TlsIdentity::Start(files);
}

}  // namespace lockstep
