#include "worker/group/hello_check.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>

#include "common/status_macros.h"

namespace lockstep {
namespace {

template <typename T>
absl::Status CheckSame(int rank, absl::string_view what, const T& leader,
                       const T& follower) {
  if (leader == follower) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "rank ", rank, " has another ", what, " than the leader: its is ",
      follower, ", the leader's is ", leader, "."));
}

}  // namespace

absl::Status CheckHello(const v1::Hello& leader, const v1::Hello& follower) {
  const int rank = follower.rank();
  LOCKSTEP_RETURN_IF_ERROR(CheckSame(rank, "--tensor_parallel_size",
                                     leader.tensor_parallel_size(),
                                     follower.tensor_parallel_size()));
  if (follower.rank() == 0 ||
      follower.rank() >= leader.tensor_parallel_size()) {
    return absl::FailedPreconditionError(
        absl::StrCat("--rank is ", follower.rank(),
                     "; the followers of this group are 1 to ",
                     leader.tensor_parallel_size() - 1, "."));
  }
  LOCKSTEP_RETURN_IF_ERROR(
      CheckSame(rank, "build", leader.build_id(), follower.build_id()));
  LOCKSTEP_RETURN_IF_ERROR(CheckSame(rank, "model (fingerprint)",
                                     leader.model_fingerprint(),
                                     follower.model_fingerprint()));
  LOCKSTEP_RETURN_IF_ERROR(CheckSame(rank, "configuration (digest)",
                                     leader.configuration_digest(),
                                     follower.configuration_digest()));
  return CheckSame(rank, "instruction set (--cpu_isa)", leader.isa(),
                   follower.isa());
}

}  // namespace lockstep
