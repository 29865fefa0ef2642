#include "common/environment_flags.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>
#include <gflags/gflags.h>

#include <cstdlib>
#include <vector>

#include "common/status_macros.h"

namespace lockstep {

std::string EnvironmentVariableOf(absl::string_view flag) {
  return absl::StrCat("LOCKSTEP_", absl::AsciiStrToUpper(flag));
}

absl::Status SetFlagsFromEnvironment() {
  std::vector<gflags::CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);
  for (const gflags::CommandLineFlagInfo& flag : flags) {
    const std::string variable = EnvironmentVariableOf(flag.name);
    const char* value = std::getenv(variable.c_str());
    if (value == nullptr) continue;
    if (gflags::SetCommandLineOption(flag.name.c_str(), value).empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("the environment variable ", variable, " is \"", value,
                       "\", which is no ", flag.type, "."));
    }
  }
  return absl::OkStatus();
}

absl::Status ParseFlags(int argc, char** argv) {
  LOCKSTEP_RETURN_IF_ERROR(SetFlagsFromEnvironment());
  gflags::ParseCommandLineFlags(&argc, &argv, /*remove_flags=*/true);
  if (argc == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("\"", argv[1], "\" is no flag; see --help."));
}

}  // namespace lockstep
