#include "worker/runtime/rank_collective.h"

#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "worker/collectives/gloo_collective.h"
#include "worker/collectives/self_test.h"
#include "worker/collectives/shared_memory_collective.h"
#include "worker/collectives/single_collective.h"

namespace lockstep {

absl::Status RankCollective::Open(const std::string& host) {
  switch (options_.kind) {
    case CollectiveKind::kSingle:
      Set(std::make_unique<SingleCollective>());
      return absl::OkStatus();
    case CollectiveKind::kSharedMemory: {
      if (options_.rank > 0) return absl::OkStatus();  // the leader's is joined
      LOCKSTEP_ASSIGN_OR_RETURN(auto collective,
                                SharedMemoryCollective::Create(options_.size));
      const SharedMemoryCollective::Address address = collective->address();
      v1::SharedMemory& memory = *address_.mutable_shared_memory();
      memory.set_process_id(address.process_id);
      memory.set_file_descriptor(address.file_descriptor);
      Set(std::move(collective));
      return absl::OkStatus();
    }
    case CollectiveKind::kGloo: {
      LOCKSTEP_ASSIGN_OR_RETURN(
          auto collective,
          GlooCollective::Listen(host, options_.rank, options_.size));
      for (const std::string& of_rank : collective->addresses()) {
        address_.add_gloo(of_rank);
      }
      Set(std::move(collective));
      return absl::OkStatus();
    }
    case CollectiveKind::kNccl: {
      LOCKSTEP_ASSIGN_OR_RETURN(
          *address_.mutable_nccl_id(),
          options_.gpu->OpenCollective({.rank = options_.rank,
                                        .size = options_.size,
                                        .failed = options_.failed}));
      Use(options_.gpu->collective());
      return absl::OkStatus();
    }
  }
  return absl::OkStatus();
}

absl::Status RankCollective::Meet(const v1::CollectiveAddress& others,
                                  absl::Duration timeout) {
  if (options_.kind == CollectiveKind::kNccl) {
    return options_.gpu->MeetRanks(others.nccl_id(), timeout);
  }
  LOCKSTEP_RETURN_IF_ERROR(Join(others));
  return TestCollective(collective_, timeout);
}

absl::Status RankCollective::Join(const v1::CollectiveAddress& others) {
  if (options_.kind == CollectiveKind::kGloo) {
    auto& collective = static_cast<GlooCollective&>(*own_);
    return collective.Connect({others.gloo().begin(), others.gloo().end()});
  }
  if (options_.kind == CollectiveKind::kSharedMemory && options_.rank > 0) {
    const v1::SharedMemory& memory = others.shared_memory();
    LOCKSTEP_ASSIGN_OR_RETURN(auto collective,
                              SharedMemoryCollective::Attach(
                                  {.process_id = memory.process_id(),
                                   .file_descriptor = memory.file_descriptor()},
                                  options_.rank, options_.size));
    Set(std::move(collective));
  }
  return absl::OkStatus();
}

void RankCollective::Set(std::unique_ptr<Collective> collective) {
  own_ = std::move(collective);
  Use(own_.get());
}

void RankCollective::Use(Collective* collective) {
  absl::Status error;
  {
    absl::MutexLock lock(&mutex_);
    collective_ = collective;
    error = error_;
  }
  if (!error.ok()) collective->End(error);
}

void RankCollective::Close() {
  if (options_.kind == CollectiveKind::kNccl) options_.gpu->CloseCollective();
}

void RankCollective::End(const absl::Status& error) {
  Collective* collective = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (error_.ok()) error_ = error;
    collective = collective_;
  }
  if (collective != nullptr) collective->End(error);
}

}  // namespace lockstep
