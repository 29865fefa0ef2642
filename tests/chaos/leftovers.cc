#include "tests/chaos/leftovers.h"

#include <absl/strings/str_cat.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <filesystem>

#include "tests/testing/process.h"

namespace lockstep::testing {
namespace {

std::set<std::string> Segments() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    names.insert(entry.path().filename());
  }
  return names;
}

bool IsListenedTo(int port) {
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket socket(context);
  boost::system::error_code error;
  socket.connect(
      {boost::asio::ip::address_v4::loopback(), static_cast<uint16_t>(port)},
      error);
  return !error;
}

}  // namespace

Leftovers::Leftovers() : segments_(Segments()) {}

absl::Status Leftovers::Check(const Ranks& ranks) const {
  for (int rank = 0; rank < ranks.size(); ++rank) {
    if (!ranks.is_started(rank)) continue;
    const pid_t pid = ranks.pid(rank);
    if (!IsRunning(pid)) continue;
    return absl::InternalError(
        absl::StrCat("process ", pid, " of rank ", rank, " is left."));
  }
  for (const int port : {ranks.port(), ranks.leader_port()}) {
    if (port == 0 || !IsListenedTo(port)) continue;
    return absl::InternalError(
        absl::StrCat("something listens on port ", port, " still."));
  }
  for (const std::string& name : Segments()) {
    if (segments_.contains(name)) continue;
    return absl::InternalError(absl::StrCat("/dev/shm/", name, " was left."));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::testing
