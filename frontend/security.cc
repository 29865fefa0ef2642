#include "frontend/security.h"

#include <utility>

#include "common/security/tls_flags.h"
#include "common/status_macros.h"
#include "frontend/access/api_key_file.h"

namespace lockstep {
namespace {

// Null for no file.
absl::StatusOr<std::unique_ptr<FileWatch>> WatchKeys(const std::string& path,
                                                     AccessControl* access) {
  if (path.empty()) return nullptr;
  return FileWatch::Start({{"api_keys_file", path}},
                          [access](const FileWatch::Contents& contents) {
                            const auto keys = ParseApiKeys(contents[0]);
                            if (keys.ok()) access->SetKeys(*keys);
                            return keys.status();
                          });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Security>> Security::Start(
    const SecurityOptions& options) {
  std::unique_ptr<Security> security(new Security);
  LOCKSTEP_ASSIGN_OR_RETURN(
      security->keys_, WatchKeys(options.api_keys_file, &security->access_));
  LOCKSTEP_ASSIGN_OR_RETURN(security->tls_, StartServerTls(options.tls));
  LOCKSTEP_ASSIGN_OR_RETURN(
      security->worker_tls_,
      StartClientTls(options.worker_tls.files, options.worker_tls.server_name));
  return security;
}

}  // namespace lockstep
