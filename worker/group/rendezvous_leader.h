#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <boost/asio/ip/tcp.hpp>
#include <functional>
#include <memory>
#include <string>

#include "proto/group.pb.h"
#include "worker/group/io_thread.h"
#include "worker/group/membership.h"

namespace lockstep {

// Where the leader waits for its followers. Made before they are started, so
// that they can be told the port.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto rendezvous,
//                             RendezvousLeader::Listen("127.0.0.1:0"));
//   …start the local ranks…
//   LOCKSTEP_ASSIGN_OR_RETURN(Membership membership,
//                             rendezvous->Gather(hello, options));
//
// Starts no thread.
class RendezvousLeader {
 public:
  struct Options {
    absl::Duration timeout = absl::Seconds(120);
    absl::Duration report_every = absl::Seconds(5);
    uint64_t epoch = 1;
    // Asked several times a second; an error, of a local rank that has ended,
    // ends the wait.
    std::function<absl::Status()> check;
  };

  // `address` is host:port; port 0 takes a free one. INVALID_ARGUMENT and
  // UNAVAILABLE (in use) name --leader_address.
  static absl::StatusOr<std::unique_ptr<RendezvousLeader>> Listen(
      const std::string& address);

  int port() const { return port_; }

  // Waits for ranks 1 to tensor_parallel_size - 1, refuses whoever does not fit
  // (see CheckHello) and goes on waiting, and welcomes all once they are there.
  // DEADLINE_EXCEEDED names the ranks that are missing and the last refusal.
  // Called once. While the membership's I/O thread runs, whoever comes after
  // that is refused by name: a group starts again as a whole.
  absl::StatusOr<Membership> Gather(const v1::Hello& own,
                                    const Options& options);

 private:
  class Gathering;

  RendezvousLeader();

  std::unique_ptr<IoThread> io_;  // before acceptor_, which runs on it
  boost::asio::ip::tcp::acceptor acceptor_;
  int port_ = 0;
};

}  // namespace lockstep
