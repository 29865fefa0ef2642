#include "tests/testing/lossy_hub.h"

#include <absl/strings/str_cat.h>
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace lockstep::testing {
namespace {

constexpr size_t kMostFrames = 100'000;  // a wire holds no more

}  // namespace

LossyHub::LossyHub(const Options& options)
    : options_(options),
      stop_event_(eventfd(0, EFD_CLOEXEC)),
      random_(options.seed) {}

absl::StatusOr<std::unique_ptr<LossyHub>> LossyHub::Start(
    const std::vector<std::string>& interfaces, const Options& options) {
  std::unique_ptr<LossyHub> hub(new LossyHub(options));
  for (const std::string& interface : interfaces) {
    const int port = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK,
                            htons(ETH_P_ALL));
    hub->ports_.push_back(port);
    const int on = 1;
    sockaddr_ll address = {};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_ALL);
    address.sll_ifindex = static_cast<int>(if_nametoindex(interface.c_str()));
    // What the hub itself sends does not come back to it.
    if (port < 0 ||
        setsockopt(port, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) !=
            0 ||
        bind(port, reinterpret_cast<sockaddr*>(&address), sizeof(address)) !=
            0) {
      return absl::InternalError(absl::StrCat("a packet socket of ", interface,
                                              ": ", std::strerror(errno)));
    }
  }
  hub->thread_ = std::thread([hub = hub.get()] { hub->Run(); });
  pthread_setname_np(hub->thread_.native_handle(), "hub");
  return hub;
}

LossyHub::~LossyHub() {
  const uint64_t one = 1;
  if (write(stop_event_, &one, sizeof(one)) == sizeof(one) &&
      thread_.joinable()) {
    thread_.join();
  }
  for (const int port : ports_) close(port);
  close(stop_event_);
}

void LossyHub::Run() {
  std::vector<pollfd> events = {
      {.fd = stop_event_, .events = POLLIN, .revents = 0}};
  for (const int port : ports_) {
    events.push_back({.fd = port, .events = POLLIN, .revents = 0});
  }
  while (true) {
    timespec wait = {};
    if (!frames_.empty()) {
      wait = absl::ToTimespec(
          std::max(absl::ZeroDuration(),
                   absl::FromChrono(frames_.front().due - Clock::now())));
    }
    ppoll(events.data(), events.size(), frames_.empty() ? nullptr : &wait,
          nullptr);
    if (events[0].revents != 0) return;
    for (size_t port = 0; port < ports_.size(); ++port) {
      if (events[port + 1].revents != 0) Receive(static_cast<int>(port));
    }
    SendDue();
  }
}

void LossyHub::Receive(int port) {
  std::array<char, 2048> buffer;
  const Clock::time_point due =
      Clock::now() + absl::ToChronoNanoseconds(options_.delay);
  std::uniform_real_distribution<double> chance;
  while (true) {
    const ssize_t size = recv(ports_[port], buffer.data(), buffer.size(), 0);
    if (size <= 0) return;
    if (chance(random_) < options_.loss || frames_.size() == kMostFrames) {
      ++num_lost_;
      continue;
    }
    frames_.push_back(
        {.due = due, .from = port, .bytes = std::string(buffer.data(), size)});
  }
}

void LossyHub::SendDue() {
  const Clock::time_point now = Clock::now();
  while (!frames_.empty() && frames_.front().due <= now) {
    const Frame& frame = frames_.front();
    for (size_t port = 0; port < ports_.size(); ++port) {
      if (static_cast<int>(port) == frame.from) continue;
      // An interface that is down loses it.
      if (send(ports_[port], frame.bytes.data(), frame.bytes.size(), 0) < 0) {
        ++num_lost_;
      }
    }
    frames_.pop_front();
  }
}

}  // namespace lockstep::testing
