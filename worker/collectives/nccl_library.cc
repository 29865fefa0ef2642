#include "worker/collectives/nccl_library.h"

#include <absl/strings/str_cat.h>
#include <dlfcn.h>

namespace lockstep {
namespace {

template <typename Function>
bool Find(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(dlsym(library, name));
  return *function != nullptr;
}

bool FindApi(void* library, NcclApi* api) {
  return Find(library, "ncclGetUniqueId", &api->get_unique_id) &&
         Find(library, "ncclCommInitRankConfig", &api->init_rank) &&
         Find(library, "ncclCommGetAsyncError", &api->async_error) &&
         Find(library, "ncclAllReduce", &api->all_reduce) &&
         Find(library, "ncclAllGather", &api->all_gather) &&
         Find(library, "ncclCommAbort", &api->abort) &&
         Find(library, "ncclGetErrorString", &api->error_string) &&
         Find(library, "ncclGetLastError", &api->last_error);
}

}  // namespace

absl::StatusOr<std::unique_ptr<NcclLibrary>> NcclLibrary::Load(
    const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("There is no NCCL on this machine: ", dlerror(), "."));
  }
  NcclApi api;
  if (!FindApi(handle, &api)) {
    dlclose(handle);
    return absl::FailedPreconditionError(absl::StrCat(
        library, " is no NCCL of version 2.18 or later: it lacks calls."));
  }
  return std::unique_ptr<NcclLibrary>(new NcclLibrary(handle, api));
}

NcclLibrary::~NcclLibrary() { dlclose(library_); }

absl::Status NcclLibrary::Check(NcclApi::Result result, absl::string_view call,
                                absl::string_view device) const {
  if (result == NcclApi::kSuccess) return absl::OkStatus();
  const char* const last = api_.last_error(nullptr);
  return absl::UnavailableError(
      absl::StrCat(call, " on ", device, ": ", api_.error_string(result), " (",
                   result, ")", last == nullptr || *last == '\0' ? "" : ", ",
                   last == nullptr ? "" : last));
}

}  // namespace lockstep
