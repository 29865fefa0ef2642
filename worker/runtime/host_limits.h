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

// The least memory.max of a control group and those it lies in. `path` is its
// line in /proc/self/cgroup after "0::"; `root` where the groups are mounted.
// Nothing where none is limited.
std::optional<int64_t> ControlGroupMemoryBytes(const std::string& root,
                                               absl::string_view path);

}  // namespace lockstep
