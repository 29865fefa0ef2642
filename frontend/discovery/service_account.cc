#include "frontend/discovery/service_account.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr size_t kMostBytes = 1 << 20;

absl::StatusOr<std::string> FromEnvironment(const char* name) {
  const char* const value = std::getenv(name);
  if (value != nullptr && *value != '\0') return value;
  return absl::FailedPreconditionError(
      absl::StrCat(name, " is not set; only a Pod can ask its API server"));
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(
      std::fopen(path.c_str(), "rbe"), std::fclose);
  if (file == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("cannot open ", path, ": ", std::strerror(errno)));
  }
  std::string content(kMostBytes, '\0');
  content.resize(std::fread(content.data(), 1, content.size(), file.get()));
  if (!content.empty() && std::ferror(file.get()) == 0) return content;
  return absl::FailedPreconditionError(
      absl::StrCat("there is no text in ", path));
}

}  // namespace

absl::StatusOr<ApiServer> ApiServerFromEnvironment() {
  ApiServer server;
  LOCKSTEP_ASSIGN_OR_RETURN(server.host,
                            FromEnvironment("KUBERNETES_SERVICE_HOST"));
  LOCKSTEP_ASSIGN_OR_RETURN(server.port,
                            FromEnvironment("KUBERNETES_SERVICE_PORT"));
  return server;
}

absl::StatusOr<ServiceAccount> ReadServiceAccount(const std::string& folder) {
  ServiceAccount account;
  LOCKSTEP_ASSIGN_OR_RETURN(account.token,
                            ReadFile(absl::StrCat(folder, "/token")));
  LOCKSTEP_ASSIGN_OR_RETURN(account.ca,
                            ReadFile(absl::StrCat(folder, "/ca.crt")));
  absl::StripAsciiWhitespace(&account.token);
  if (std::all_of(account.token.begin(), account.token.end(),
                  absl::ascii_isgraph)) {
    return account;
  }
  return absl::FailedPreconditionError(
      absl::StrCat("there is no token in ", folder, "/token"));
}

}  // namespace lockstep
