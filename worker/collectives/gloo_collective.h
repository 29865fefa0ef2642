#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/collectives/collective.h"
#include "worker/collectives/gloo_mesh.h"

namespace lockstep {

// Ranks of several hosts, over TCP.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto collective,
//                             GlooCollective::Listen("10.0.0.2", rank, size));
//   …collective->addresses()[r] goes to rank r, by whatever way…
//   LOCKSTEP_RETURN_IF_ERROR(collective->Connect(towards_this_rank));
//
// Tensors are cut in chunks. A small one goes to every rank, and each adds up
// all of them; of a large one each rank adds up a slice, and sends the sum to
// all. The order of a sum is that of ranks either way. A call that differs from
// another rank's in kind or size ends the group. Abort is legal from Listen on.
class GlooCollective final : public Collective {
 public:
  // `host` is an address of this host that the other ranks can reach. Starts
  // a thread. Errors of these three: see GlooMesh.
  static absl::StatusOr<std::unique_ptr<GlooCollective>> Listen(
      const std::string& host, int rank, int size);
  std::vector<std::string> addresses() const { return mesh_->addresses(); }
  absl::Status Connect(const std::vector<std::string>& of_rank) {
    return mesh_->Connect(of_rank);
  }

  int rank() const override { return rank_; }
  int size() const override { return size_; }
  absl::Status AllReduceSum(absl::Span<float> data) override;
  absl::Status AllGather(absl::Span<const float> in,
                         absl::Span<float> out) override;
  void SetTimeout(absl::Duration timeout) override { timeout_ = timeout; }
  void End(const absl::Status& error) override { mesh_->End(error); }
  int64_t num_all_reduces() const override { return num_all_reduces_; }
  int64_t num_all_gathers() const override { return num_all_gathers_; }

 private:
  GlooCollective(std::unique_ptr<GlooMesh> mesh, int rank, int size);

  // One chunk each.
  absl::Status ReduceAtAll(uint64_t operation, absl::Span<float> chunk);
  absl::Status ReduceBySlices(uint64_t operation, absl::Span<float> chunk);

  // Sends `in` to all; afterwards every rank's is at parts_, this one's too.
  absl::Status ShowToAll(uint64_t operation, absl::Span<const float> in);
  // Writes message `index` of outgoing messages that take `stride` bytes.
  void Write(uint64_t operation, absl::Span<const float> in, int index,
             size_t stride);
  // Exchanges what was written; sets parts_.
  absl::Status Exchange(uint64_t operation, const GlooMesh::Layout& layout);

  const std::unique_ptr<GlooMesh> mesh_;
  const int rank_;
  const int size_;
  absl::Duration timeout_ = absl::InfiniteDuration();
  std::vector<const float*> parts_;  // by rank, of the last exchange
  std::atomic<int64_t> num_all_reduces_ = 0;
  std::atomic<int64_t> num_all_gathers_ = 0;
};

}  // namespace lockstep
