#include "tests/testing/host_network.h"

#include <absl/strings/str_cat.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "common/status_macros.h"

namespace lockstep::testing {
namespace {

constexpr char kOwnNamespace[] = "/proc/thread-self/ns/net";
constexpr char kOwnAddress[] = "10.77.0.254";

// Runs the program `ip`.
absl::Status Ip(const std::string& arguments) {
  const std::string command = absl::StrCat("ip ", arguments, " 2>&1");
  std::FILE* const pipe = popen(command.c_str(), "re");
  if (pipe == nullptr) return absl::InternalError(std::strerror(errno));
  std::string output;
  std::array<char, 256> buffer;
  while (std::fgets(buffer.data(), buffer.size(), pipe) != nullptr) {
    output += buffer.data();
  }
  const int status = pclose(pipe);
  if (status == 0) return absl::OkStatus();
  if (WEXITSTATUS(status) == 127) {
    return absl::NotFoundError("the program `ip` is not there (iproute2).");
  }
  return absl::InternalError(absl::StrCat(command, ": ", output));
}

absl::StatusOr<int> NewNamespace() {
  if (unshare(CLONE_NEWNET) != 0) {
    return absl::PermissionDeniedError(absl::StrCat(
        "cannot make a network namespace: ", std::strerror(errno), "."));
  }
  return open(kOwnNamespace, O_RDONLY | O_CLOEXEC);
}

// Where this thread goes with the first network, to stay there: threads that it
// has started since, such as gRPC's, are there too.
absl::StatusOr<int> OwnNamespace() {
  static int own = -1;
  if (own < 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(own, NewNamespace());
    LOCKSTEP_RETURN_IF_ERROR(Ip("link set lo up"));
  }
  setns(own, CLONE_NEWNET);
  return own;
}

// Whole frames with checksums, as a packet socket can pass them on.
absl::Status WriteChecksums(const char* interface) {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  absl::Status status;
  for (const uint32_t command : {ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO}) {
    ethtool_value off = {.cmd = command, .data = 0};
    ifreq request = {};
    std::strncpy(request.ifr_name, interface, IFNAMSIZ - 1);
    request.ifr_data = reinterpret_cast<char*>(&off);
    if (ioctl(fd, SIOCETHTOOL, &request) != 0) {
      status = absl::InternalError(absl::StrCat(
          "ethtool ", command, " of ", interface, ": ", std::strerror(errno)));
    }
  }
  close(fd);
  return status;
}

// The hosts' ends of their cables, and that of the thread itself.
std::string PortOf(int host) { return absl::StrCat("port", host); }

}  // namespace

absl::StatusOr<std::unique_ptr<HostNetwork>> HostNetwork::Create(
    const Options& options) {
  std::unique_ptr<HostNetwork> network(new HostNetwork());
  for (int host = 0; host < options.num_hosts; ++host) {
    LOCKSTEP_ASSIGN_OR_RETURN(const int fd, NewNamespace());
    network->hosts_.push_back(fd);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(network->own_, OwnNamespace());
  const bool with_hub = options.hub.has_value();
  std::vector<std::string> ports = {"self-port"};
  LOCKSTEP_RETURN_IF_ERROR(Ip("link add self type veth peer name self-port"));
  LOCKSTEP_RETURN_IF_ERROR(
      Ip(absl::StrCat("address add ", kOwnAddress, "/24 dev self")));
  LOCKSTEP_RETURN_IF_ERROR(Ip("link set self up"));
  if (with_hub) LOCKSTEP_RETURN_IF_ERROR(WriteChecksums("self"));
  for (int host = 0; host < options.num_hosts; ++host) {
    LOCKSTEP_RETURN_IF_ERROR(network->AddHost(host, with_hub));
    ports.push_back(PortOf(host));
  }
  if (!with_hub) LOCKSTEP_RETURN_IF_ERROR(Ip("link add bridge type bridge"));
  if (!with_hub) LOCKSTEP_RETURN_IF_ERROR(Ip("link set bridge up"));
  for (const std::string& port : ports) {
    if (!with_hub) {
      LOCKSTEP_RETURN_IF_ERROR(
          Ip(absl::StrCat("link set ", port, " master bridge")));
    }
    LOCKSTEP_RETURN_IF_ERROR(Ip(absl::StrCat("link set ", port, " up")));
  }
  if (with_hub) {
    LOCKSTEP_ASSIGN_OR_RETURN(network->hub_,
                              LossyHub::Start(ports, *options.hub));
  }
  return network;
}

// What an error leaves out is not there.
HostNetwork::~HostNetwork() {
  if (own_ < 0) return;  // this is the machine's own network
  for (int host = 0; host < static_cast<int>(hosts_.size()); ++host) {
    (void)Ip(absl::StrCat("link delete ", PortOf(host)));
    close(hosts_[host]);
  }
  (void)Ip("link delete self");
  (void)Ip("link delete bridge");
}

std::string HostNetwork::address(int host) {
  return absl::StrCat("10.77.0.", host + 1);
}

absl::Status HostNetwork::AddHost(int host, bool with_checksums) {
  LOCKSTEP_RETURN_IF_ERROR(
      Ip(absl::StrCat("link add ", PortOf(host), " type veth peer name eth0 ",
                      "netns /proc/", getpid(), "/fd/", hosts_[host])));
  absl::Status status;
  On(host, [&] {
    status = Ip("link set lo up");
    if (status.ok()) {
      status = Ip(absl::StrCat("address add ", address(host), "/24 dev eth0"));
    }
    if (status.ok()) status = Ip("link set eth0 up");
    if (status.ok() && with_checksums) status = WriteChecksums("eth0");
  });
  return status;
}

void HostNetwork::On(int host, const std::function<void()>& fn) {
  setns(hosts_[host], CLONE_NEWNET);
  fn();
  setns(own_, CLONE_NEWNET);
}

absl::Status HostNetwork::Unplug(int host) {
  return Ip(absl::StrCat("link set ", PortOf(host), " down"));
}

}  // namespace lockstep::testing
