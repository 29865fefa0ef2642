#include "frontend/security_options.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <gflags/gflags.h>

#include "common/flag_check.h"
#include "common/security/tls_flags.h"
#include "common/status_macros.h"
#include "frontend/http/cross_origin.h"

DEFINE_string(api_keys_file, "",
              "File of the API keys, one a line, with their limits; empty: no "
              "key is needed. Read again when it changes.");
DEFINE_string(allowed_origins, "",
              "Origins of the web pages that may ask over HTTP, with commas, "
              "such as https://app.example.org; * is every page, empty none.");
DEFINE_int32(http_max_connections_per_address, 0,
             "HTTP connections held at once from one address, or from one /64 "
             "of IPv6; 0: as many as --http_max_connections.");
DEFINE_string(worker_tls_ca, "",
              "PEM file of the CAs that the workers' certificates must be of; "
              "empty: no TLS towards workers. Read again when it changes.");
DEFINE_string(worker_tls_name, "",
              "The name that the workers' certificates must have; empty: that "
              "of the worker's address.");
DEFINE_string(tokenizer_tls_ca, "",
              "As --worker_tls_ca, of the tokenizer service.");
DEFINE_string(tokenizer_tls_name, "",
              "As --worker_tls_name, of the tokenizer service.");
DEFINE_string(client_tls_certificate, "",
              "PEM file of the certificate that the gateway shows to workers "
              "and the tokenizer service, where these want one.");
DEFINE_string(client_tls_key, "",
              "PEM file of the private key of --client_tls_certificate.");

namespace lockstep {
namespace {

constexpr int kMaxConnections = 1'000'000;

absl::StatusOr<std::vector<std::string>> OriginsFromFlags() {
  const std::vector<std::string> origins =
      absl::StrSplit(FLAGS_allowed_origins, ',', absl::SkipEmpty());
  for (const std::string& origin : origins) {
    LOCKSTEP_RETURN_IF_ERROR(http::CheckOrigin("allowed_origins", origin));
  }
  return origins;
}

absl::StatusOr<ClientTlsOptions> ClientTlsFromFlags(
    const NamedFile& ca, const std::string& name_flag,
    const std::string& server_name) {
  ClientTlsOptions options;
  options.server_name = server_name;
  options.files.ca = ca;
  if (!ca.path.empty()) {
    options.files.certificate = {"client_tls_certificate",
                                 FLAGS_client_tls_certificate};
    options.files.key = {"client_tls_key", FLAGS_client_tls_key};
    return options;
  }
  if (server_name.empty()) return options;
  return absl::InvalidArgumentError(
      absl::StrCat("--", name_flag, " is set and --", ca.flag,
                   " is not; without TLS there is no name to check."));
}

absl::Status CheckClientCertificate() {
  LOCKSTEP_RETURN_IF_ERROR(
      CheckPairFlags({"client_tls_certificate", FLAGS_client_tls_certificate},
                     {"client_tls_key", FLAGS_client_tls_key}));
  if (FLAGS_client_tls_certificate.empty() || !FLAGS_worker_tls_ca.empty() ||
      !FLAGS_tokenizer_tls_ca.empty()) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      "--client_tls_certificate is set, and neither --worker_tls_ca nor "
      "--tokenizer_tls_ca is; without TLS there is nobody to show it to.");
}

}  // namespace

std::string SecurityOptions::ToString() const {
  return absl::StrCat(
      "api_keys_file=", api_keys_file,
      " allowed_origins=", absl::StrJoin(allowed_origins, ","),
      " http_max_connections_per_address=", http_max_connections_per_address,
      " tls=", lockstep::ToString(tls),
      " worker_tls=", lockstep::ToString(worker_tls.files),
      " worker_tls_name=", worker_tls.server_name,
      " tokenizer_tls=", lockstep::ToString(tokenizer_tls.files),
      " tokenizer_tls_name=", tokenizer_tls.server_name);
}

absl::StatusOr<SecurityOptions> SecurityOptionsFromFlags() {
  LOCKSTEP_RETURN_IF_ERROR(CheckRangeFlag(
      "http_max_connections_per_address",
      FLAGS_http_max_connections_per_address, 0, kMaxConnections));
  LOCKSTEP_RETURN_IF_ERROR(CheckClientCertificate());
  SecurityOptions options;
  options.api_keys_file = FLAGS_api_keys_file;
  options.http_max_connections_per_address =
      FLAGS_http_max_connections_per_address;
  LOCKSTEP_ASSIGN_OR_RETURN(options.allowed_origins, OriginsFromFlags());
  LOCKSTEP_ASSIGN_OR_RETURN(options.tls, ServerTlsFilesFromFlags());
  LOCKSTEP_ASSIGN_OR_RETURN(
      options.worker_tls,
      ClientTlsFromFlags({"worker_tls_ca", FLAGS_worker_tls_ca},
                         "worker_tls_name", FLAGS_worker_tls_name));
  LOCKSTEP_ASSIGN_OR_RETURN(
      options.tokenizer_tls,
      ClientTlsFromFlags({"tokenizer_tls_ca", FLAGS_tokenizer_tls_ca},
                         "tokenizer_tls_name", FLAGS_tokenizer_tls_name));
  return options;
}

}  // namespace lockstep
