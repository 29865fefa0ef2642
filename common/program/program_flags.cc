#include "common/program/program_flags.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/strings/strip.h>
#include <gflags/gflags.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "common/environment_flags.h"
#include "common/program/config_file.h"
#include "common/program/version.h"
#include "common/status_macros.h"

DEFINE_string(config, "",
              "File of flags, a line \"name: value\" each. The command line "
              "and the environment win over it.");
DEFINE_bool(print_config, false,
            "Print all flags in force and where each came from, and exit.");

namespace lockstep {
namespace {

using gflags::CommandLineFlagInfo;

// Where flags that have not their default came from, by name.
using Origins = std::map<std::string, std::string>;

// Others say what to do with a file, or are gflags' own, about the command
// line itself.
bool CanBeInFile(const CommandLineFlagInfo& flag) {
  return flag.name != "config" && flag.name != "print_config" &&
         !absl::StrContains(flag.filename, "gflags");
}

// The flag that a word of the command line sets; empty where it is none.
std::string FlagOf(absl::string_view word) {
  if (!absl::ConsumePrefix(&word, "-")) return "";
  absl::ConsumePrefix(&word, "-");
  std::string name(word.substr(0, word.find('=')));
  std::replace(name.begin(), name.end(), '-', '_');  // as gflags does
  CommandLineFlagInfo flag;
  if (gflags::GetCommandLineFlagInfo(name.c_str(), &flag)) return name;
  if (!absl::StartsWith(name, "no")) return "";
  name.erase(0, 2);
  return gflags::GetCommandLineFlagInfo(name.c_str(), &flag) ? name : "";
}

// The command line is parsed last, so that it wins; this must be known first.
std::string ConfigPath(int argc, char** argv) {
  std::string path;
  if (const char* value =
          std::getenv(EnvironmentVariableOf("config").c_str())) {
    path = value;
  }
  for (int i = 1; i < argc; ++i) {
    const absl::string_view word = argv[i];
    if (FlagOf(word) != "config") continue;
    const size_t equals = word.find('=');
    if (equals != word.npos) {
      path = std::string(word.substr(equals + 1));
    } else if (i + 1 < argc) {
      path = argv[++i];
    }
  }
  return path;
}

absl::Status SetFromLine(const ConfigEntry& entry) {
  CommandLineFlagInfo flag;
  if (!gflags::GetCommandLineFlagInfo(entry.name.c_str(), &flag) ||
      !CanBeInFile(flag)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "\"", entry.name, "\" is no flag that a file can set; see --help."));
  }
  if (gflags::SetCommandLineOption(entry.name.c_str(), entry.value.c_str())
          .empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        entry.name, " is \"", entry.value, "\", which is no ", flag.type, "."));
  }
  return absl::OkStatus();
}

absl::Status SetFromFile(const std::string& path, Origins* origins) {
  std::ifstream file(path, std::ios::binary);
  file.peek();  // a folder can be opened, and not read
  if (!file.is_open() || file.bad()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--config is \"", path,
                     "\", which can not be read: ", std::strerror(errno), "."));
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<ConfigEntry> entries,
                            ParseConfig(text, path));
  for (const ConfigEntry& entry : entries) {
    const std::string place = absl::StrCat(path, ":", entry.line);
    if (const absl::Status set = SetFromLine(entry); !set.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat(place, ": ", set.message()));
    }
    (*origins)[entry.name] = place;
  }
  return absl::OkStatus();
}

void NoteOrigins(int argc, char** argv, Origins* origins) {
  std::vector<CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);
  for (const CommandLineFlagInfo& flag : flags) {
    const std::string variable = EnvironmentVariableOf(flag.name);
    if (std::getenv(variable.c_str()) != nullptr) {
      (*origins)[flag.name] = variable;
    }
  }
  for (int i = 1; i < argc; ++i) {
    const std::string flag = FlagOf(argv[i]);
    if (!flag.empty()) (*origins)[flag] = "the command line";
  }
}

void PrintConfig(const Origins& origins) {
  std::vector<CommandLineFlagInfo> flags;
  gflags::GetAllFlags(&flags);
  for (const CommandLineFlagInfo& flag : flags) {
    if (!CanBeInFile(flag)) continue;
    const auto origin = origins.find(flag.name);
    std::printf("%s  # %s\n",
                FormatConfigLine(flag.name, flag.current_value).c_str(),
                origin == origins.end() ? "default" : origin->second.c_str());
  }
}

}  // namespace

absl::Status ParseProgramFlags(int argc, char** argv) {
  gflags::SetVersionString(kVersion);
  Origins origins;
  const std::string path = ConfigPath(argc, argv);
  if (!path.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(SetFromFile(path, &origins));
  }
  NoteOrigins(argc, argv, &origins);
  LOCKSTEP_RETURN_IF_ERROR(ParseFlags(argc, argv));
  if (!FLAGS_print_config) return absl::OkStatus();
  PrintConfig(origins);
  std::exit(0);
}

}  // namespace lockstep
