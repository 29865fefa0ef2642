#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstddef>
#include <memory>
#include <string>

struct CUstream_st;
struct ncclComm;

namespace lockstep {

// What of NCCL is called, as nccl.h of version 2.28 declares it. Found at run
// time: this program is built without NCCL and starts without it.
struct NcclApi {
  using Result = int;  // ncclResult_t
  using Communicator = ncclComm*;
  using Stream = CUstream_st*;

  struct UniqueId {
    char bytes[128];
  };

  // The beginning of ncclConfig_t. NCCL reads `size` bytes of it, and takes
  // what `version` does not know yet from its own defaults.
  struct Config {
    size_t size = sizeof(Config);
    unsigned magic = 0xcafebeef;
    unsigned version = 21400;
    int blocking = 1;
  };

  Result (*get_unique_id)(UniqueId*);
  Result (*init_rank)(Communicator*, int size, UniqueId, int rank, Config*);
  Result (*async_error)(Communicator, Result*);
  Result (*all_reduce)(const void* in, void* out, size_t count, int type,
                       int operation, Communicator, Stream);
  Result (*all_gather)(const void* in, void* out, size_t count, int type,
                       Communicator, Stream);
  Result (*abort)(Communicator);
  const char* (*error_string)(Result);
  const char* (*last_error)(Communicator);

  static constexpr Result kSuccess = 0;
  static constexpr Result kInProgress = 7;
  static constexpr int kFloat32 = 7;  // ncclDataType_t
  static constexpr int kSum = 0;      // ncclRedOp_t
};

// NCCL, loaded at run time. Outlives its communicators. Any thread.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto nccl, NcclLibrary::Load());
class NcclLibrary {
 public:
  // FAILED_PRECONDITION, in one sentence, where there is none.
  static absl::StatusOr<std::unique_ptr<NcclLibrary>> Load(
      const std::string& library = "libnccl.so.2");

  ~NcclLibrary();
  NcclLibrary(const NcclLibrary&) = delete;
  NcclLibrary& operator=(const NcclLibrary&) = delete;

  const NcclApi& api() const { return api_; }

  // OK for success; else UNAVAILABLE, as the group can not go on, with the
  // call, the device and what NCCL says of this thread's last error.
  absl::Status Check(NcclApi::Result result, absl::string_view call,
                     absl::string_view device) const;

 private:
  NcclLibrary(void* library, const NcclApi& api)
      : library_(library), api_(api) {}

  void* const library_;
  const NcclApi api_;
};

}  // namespace lockstep
