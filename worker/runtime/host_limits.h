#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace lockstep {

// The cores this process may run on, ascending.
std::vector<int> UsableCores();

// Bytes of memory this process may use: the least limit of its control groups,
// or the host's memory.
int64_t UsableMemoryBytes();

// The least memory limit of the control groups a process is in and of those
// they lie in, of both versions of control groups; nothing where none is
// limited. `mount` is where they are mounted, `membership` the text of the
// process's /proc/PID/cgroup. A group that can not be seen below `mount`, as in
// a container, has no say; those above it have.
std::optional<int64_t> ControlGroupMemoryBytes(const std::string& mount,
                                               absl::string_view membership);

}  // namespace lockstep
