#include "worker/group/hello_check.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <google/protobuf/descriptor.h>

#include "common/status_macros.h"

namespace lockstep {
namespace {

using google::protobuf::FieldDescriptor;

template <typename T>
absl::Status CheckSame(int rank, absl::string_view what, const T& leader,
                       const T& follower) {
  if (leader == follower) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      "rank ", rank, " has another ", what, " than the leader: its is ",
      follower, ", the leader's is ", leader, "."));
}

absl::Status CheckSameFlags(int rank, const v1::RankFlags& leader,
                            const v1::RankFlags& follower) {
  const google::protobuf::Descriptor& flags = *v1::RankFlags::GetDescriptor();
  const google::protobuf::Reflection& values = *v1::RankFlags::GetReflection();
  for (int i = 0; i < flags.field_count(); ++i) {
    const FieldDescriptor* flag = flags.field(i);
    const auto value = [&values, flag](const v1::RankFlags& message) {
      return flag->cpp_type() == FieldDescriptor::CPPTYPE_STRING
                 ? values.GetString(message, flag)
                 : absl::StrCat(values.GetUInt32(message, flag));
    };
    LOCKSTEP_RETURN_IF_ERROR(CheckSame(rank, absl::StrCat("--", flag->name()),
                                       value(leader), value(follower)));
  }
  return absl::OkStatus();
}

// The collectives of this build are shared memory.
absl::Status CheckSameHost(const v1::Hello& leader, const v1::Hello& follower) {
  if (leader.boot_id() != follower.boot_id()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "rank ", follower.rank(), " runs on another host than the leader ",
        "(boot id ", follower.boot_id(), ", the leader's is ", leader.boot_id(),
        "); ranks exchange tensors over shared memory, so all of "
        "--tensor_parallel_size must run on one host."));
  }
  if (leader.pid_namespace() != follower.pid_namespace()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "rank ", follower.rank(), " can not see the leader's process (its ",
        "PID namespace is ", follower.pid_namespace(), ", the leader's is ",
        leader.pid_namespace(), "); ranks share memory through /proc, so ",
        "start them in one container or let the containers share it."));
  }
  return absl::OkStatus();
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
  LOCKSTEP_RETURN_IF_ERROR(
      CheckSameFlags(rank, leader.flags(), follower.flags()));
  return CheckSameHost(leader, follower);
}

}  // namespace lockstep
