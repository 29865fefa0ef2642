#include "worker/runtime/host_limits.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_split.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <sstream>

namespace lockstep {
namespace {

constexpr char kControlGroups[] = "/sys/fs/cgroup";

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The least limit in files called `file` of a group and those it lies in.
int64_t LeastLimit(const std::string& hierarchy, absl::string_view group,
                   absl::string_view file) {
  int64_t least = std::numeric_limits<int64_t>::max();
  while (true) {
    std::ifstream limit(absl::StrCat(hierarchy, group, "/", file));
    std::string text;
    int64_t bytes = 0;
    // Version 2's "max" is no number: no limit.
    if (std::getline(limit, text) && absl::SimpleAtoi(text, &bytes)) {
      least = std::min(least, bytes);
    }
    if (group.empty()) return least;
    group = group.substr(0, group.rfind('/'));
  }
}

bool HasMemoryController(absl::string_view controllers) {
  const std::vector<absl::string_view> names = absl::StrSplit(controllers, ',');
  return std::find(names.begin(), names.end(), "memory") != names.end();
}

}  // namespace

std::vector<int> UsableCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &allowed)) cores.push_back(core);
    }
  }
  if (cores.empty()) cores.push_back(0);
  return cores;
}

int64_t UsableMemoryBytes() {
  const int64_t host =
      int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGE_SIZE);
  const auto limit =
      ControlGroupMemoryBytes(kControlGroups, ReadAll("/proc/self/cgroup"));
  return std::min(host, limit.value_or(host));
}

std::optional<int64_t> ControlGroupMemoryBytes(const std::string& mount,
                                               absl::string_view membership) {
  int64_t least = std::numeric_limits<int64_t>::max();
  // A line is HIERARCHY:CONTROLLERS:GROUP; version 2's is 0::GROUP.
  for (const absl::string_view line : absl::StrSplit(membership, '\n')) {
    const std::vector<absl::string_view> fields =
        absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    if (fields[1].empty()) {
      least = std::min(least, LeastLimit(mount, fields[2], "memory.max"));
    } else if (HasMemoryController(fields[1])) {
      least = std::min(least, LeastLimit(mount + "/memory", fields[2],
                                         "memory.limit_in_bytes"));
    }
  }
  // Version 1 writes no limit as the largest number of whole pages.
  if (least > std::numeric_limits<int64_t>::max() - sysconf(_SC_PAGE_SIZE)) {
    return std::nullopt;
  }
  return least;
}

}  // namespace lockstep
