#include "worker/group/hello_check.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <google/protobuf/descriptor.h>

#include "common/status_macros.h"

namespace lockstep {
namespace {

using google::protobuf::FieldDescriptor;

template <typename T>
absl::Status CheckSame(const v1::Hello& follower, absl::string_view what,
                       const T& leaders, const T& own) {
  if (leaders == own) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      NameOf(follower), " has another ", what, " than the leader: its is ", own,
      ", the leader's is ", leaders, "."));
}

std::string FlagText(const v1::RankFlags& flags, const FieldDescriptor* flag) {
  const google::protobuf::Reflection& values = *v1::RankFlags::GetReflection();
  switch (flag->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      return values.GetString(flags, flag);
    case FieldDescriptor::CPPTYPE_BOOL:
      return values.GetBool(flags, flag) ? "true" : "false";
    default:
      return absl::StrCat(values.GetUInt32(flags, flag));
  }
}

absl::Status CheckSameFlags(const v1::Hello& leader,
                            const v1::Hello& follower) {
  const google::protobuf::Descriptor& flags = *v1::RankFlags::GetDescriptor();
  for (int i = 0; i < flags.field_count(); ++i) {
    const FieldDescriptor* flag = flags.field(i);
    LOCKSTEP_RETURN_IF_ERROR(CheckSame(
        follower, absl::StrCat("--", flag->name()),
        FlagText(leader.flags(), flag), FlagText(follower.flags(), flag)));
  }
  return absl::OkStatus();
}

// What ranks that share memory must.
absl::Status CheckSameHost(const v1::Hello& leader, const v1::Hello& follower) {
  if (leader.boot_id() != follower.boot_id()) {
    return absl::FailedPreconditionError(absl::StrCat(
        NameOf(follower), " runs on another host than the leader (boot id ",
        follower.boot_id(), ", the leader's is ", leader.boot_id(),
        "), but --collective is shared_memory; give all ranks "
        "--collective=gloo, or --num_nodes."));
  }
  if (leader.pid_namespace() != follower.pid_namespace()) {
    return absl::FailedPreconditionError(absl::StrCat(
        NameOf(follower), " can not see the leader's process (its PID ",
        "namespace is ", follower.pid_namespace(), ", the leader's is ",
        leader.pid_namespace(), "); ranks share memory through /proc, so ",
        "start them in one container, let the containers share it, or give ",
        "all ranks --collective=gloo."));
  }
  return absl::OkStatus();
}

}  // namespace

std::string NameOf(const v1::Hello& hello) {
  return absl::StrCat("rank ", hello.rank(), hello.host().empty() ? "" : " on ",
                      hello.host());
}

absl::Status CheckHello(const v1::Hello& leader, const v1::Hello& follower) {
  LOCKSTEP_RETURN_IF_ERROR(CheckSame(follower, "--tensor_parallel_size",
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
      CheckSame(follower, "build", leader.build_id(), follower.build_id()));
  LOCKSTEP_RETURN_IF_ERROR(CheckSame(follower, "model (fingerprint)",
                                     leader.model_fingerprint(),
                                     follower.model_fingerprint()));
  LOCKSTEP_RETURN_IF_ERROR(CheckSame(follower, "tokenizer (digest)",
                                     leader.token_bytes_digest(),
                                     follower.token_bytes_digest()));
  LOCKSTEP_RETURN_IF_ERROR(CheckSameFlags(leader, follower));
  LOCKSTEP_RETURN_IF_ERROR(CheckSame(
      follower, "number of addresses", leader.collective_address().gloo_size(),
      follower.collective_address().gloo_size()));
  return leader.collective_address().has_shared_memory()
             ? CheckSameHost(leader, follower)
             : absl::OkStatus();
}

}  // namespace lockstep
