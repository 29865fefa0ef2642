#include "worker/runtime/host_identity.h"

#include <unistd.h>

#include <array>
#include <climits>
#include <filesystem>
#include <fstream>
#include <system_error>

namespace lockstep {

std::string BootId() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(file, id);
  return id;
}

std::string PidNamespace() {
  std::error_code unreadable;
  return std::filesystem::read_symlink("/proc/self/ns/pid", unreadable);
}

std::string HostName() {
  std::array<char, HOST_NAME_MAX + 1> name = {};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace lockstep
