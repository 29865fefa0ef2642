#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <string>
#include <vector>

namespace lockstep {

// A line of a file of flags.
struct ConfigEntry {
  std::string name;
  std::string value;
  int line = 0;  // from 1
};

// "name: value" lines, in their order, as YAML reads them, too:
//
//   # Two groups.
//   workers: 10.0.0.1:50052,10.0.0.2:50052   # what follows " #" is a comment
//   health_listen: ""                        # empty
//
// A value in double quotes is all that is between them; there are no escapes.
// INVALID_ARGUMENT begins with `path` and the line's number: for what is no
// such line, and for a name that comes twice.
absl::StatusOr<std::vector<ConfigEntry>> ParseConfig(absl::string_view text,
                                                     absl::string_view path);

// `value` as a line has it.
std::string FormatConfigLine(absl::string_view name, absl::string_view value);

}  // namespace lockstep
