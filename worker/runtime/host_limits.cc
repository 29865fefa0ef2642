#include "worker/runtime/host_limits.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace lockstep {
namespace {

constexpr char kControlGroups[] = "/sys/fs/cgroup";

// The unified hierarchy's line of /proc/self/cgroup: "0::/path".
std::string OwnControlGroup() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    absl::string_view path = line;
    if (absl::ConsumePrefix(&path, "0::")) return std::string(path);
  }
  return "/";
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
  return std::min(host,
                  ControlGroupMemoryBytes(kControlGroups, OwnControlGroup())
                      .value_or(host));
}

std::optional<int64_t> ControlGroupMemoryBytes(const std::string& root,
                                               absl::string_view path) {
  std::optional<int64_t> least;
  while (true) {
    std::ifstream file(absl::StrCat(root, path, "/memory.max"));
    std::string text;
    int64_t bytes = 0;
    // "max" is no number: no limit.
    if (std::getline(file, text) && absl::SimpleAtoi(text, &bytes)) {
      least = std::min(least.value_or(bytes), bytes);
    }
    if (path.empty()) return least;
    path = path.substr(0, path.rfind('/'));
  }
}

}  // namespace lockstep
