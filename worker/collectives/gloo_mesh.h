#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace gloo::transport {
class Context;
class Device;
class UnboundBuffer;
}  // namespace gloo::transport

namespace lockstep {

// A TCP connection from every rank to every other, by Gloo, and rounds in which
// each sends a message to each. Gloo's exceptions end here.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto mesh, GlooMesh::Listen(options));
//   …mesh->addresses()[r] goes to rank r, by whatever way…
//   LOCKSTEP_RETURN_IF_ERROR(mesh->Connect(towards_this_rank));
//   std::memcpy(mesh->outgoing(), …);
//   LOCKSTEP_RETURN_IF_ERROR(mesh->Exchange({.bytes = 100}));
//   …mesh->incoming(peer)…
//
// Messages are received by Gloo's own thread, "gloo", which the mesh owns. One
// thread uses the mesh; End may come from any. After a failure every call
// fails, and the connections are closed, which ends the calls of the others.
// The process ignores SIGPIPE from Listen on: a peer may be gone.
class GlooMesh {
 public:
  struct Options {
    std::string host;  // an address of this host that the others can reach
    int rank = 0;
    int size = 1;
    size_t max_message_bytes = 0;
    size_t outgoing_bytes = 0;
    absl::Duration connect_timeout = absl::Seconds(20);
  };

  // Where a rank's outgoing messages lie.
  struct Layout {
    size_t bytes = 0;   // of each message
    size_t stride = 0;  // rank r's begins at r times this; 0: one for all
  };

  // Takes a free port of `host` for each other rank. UNAVAILABLE names `host`.
  static absl::StatusOr<std::unique_ptr<GlooMesh>> Listen(
      const Options& options);

  ~GlooMesh();

  // By rank: what that rank connects to this one by. Empty for its own. Before
  // Connect, which replaces them.
  std::vector<std::string> addresses() const;

  // `of_rank[r]` is rank r's addresses()[rank()]. UNAVAILABLE names the rank
  // that could not be reached.
  absl::Status Connect(const std::vector<std::string>& of_rank);

  // What the next Exchange sends, aligned for floats.
  char* outgoing() { return outgoing_[1 - parity_].data(); }
  // What the last Exchange sent, until the next.
  const char* sent() const { return outgoing_[parity_].data(); }

  // Sends a message to every other rank and receives one from each.
  // UNAVAILABLE names a rank that left; DEADLINE_EXCEEDED one whose message did
  // not come within `timeout`.
  // REQUIRES: connected; the messages lie within outgoing_bytes.
  absl::Status Exchange(const Layout& layout, absl::Duration timeout);

  // Of the last Exchange, until the next. max_message_bytes; what is after the
  // message is left from another. REQUIRES: rank is another's.
  const char* incoming(int rank) const;

  // See Collective::End.
  void End(const absl::Status& error) { Fail(error); }

  // OK, or the first failure.
  absl::Status status() const;

 private:
  using Buffer = std::unique_ptr<gloo::transport::UnboundBuffer>;

  // Gloo's ends of the connection to another rank, by parity of the round;
  // empty for the own rank.
  struct Peer {
    std::vector<char> memory[2];  // of what is received
    Buffer send[2];
    bool is_sending[2] = {};
    Buffer receive[2];
  };

  explicit GlooMesh(const Options& options);
  void Open();  // Gloo throws
  // Until what the last round of this parity sent to `peer` has gone; Gloo
  // throws.
  void AwaitSent(Peer* peer, int parity);

  // The first failure stays. Ends what is in progress, on this rank and, as
  // connections close, on others.
  void Fail(const absl::Status& failure);
  void CloseConnections();

  const Options options_;
  std::vector<char> outgoing_[2];  // by parity of the round
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::transport::Context> context_;
  std::vector<Peer> peers_;  // after context_, which its buffers are of
  int parity_ = 0;           // of the last round

  std::atomic<bool> has_failed_ = false;
  mutable absl::Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
