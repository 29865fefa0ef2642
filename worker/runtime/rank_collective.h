#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <functional>
#include <memory>
#include <string>

#include "proto/group.pb.h"
#include "worker/collectives/collective.h"
#include "worker/collectives/collective_kind.h"
#include "worker/cuda_engine/gpu_rank.h"

namespace lockstep {

// The collective of one rank, whatever kind it is, from the address that the
// rendezvous passes on to the first exchange.
//
//   RankCollective collective(options);
//   LOCKSTEP_RETURN_IF_ERROR(collective.Open(host));
//   …rendezvous: collective.address() goes out, `others` comes in…
//   LOCKSTEP_RETURN_IF_ERROR(collective.Meet(others, timeout));
//   collective.get()->AllReduceSum(…);
//
// One thread, but for End.
class RankCollective {
 public:
  struct Options {
    CollectiveKind kind = CollectiveKind::kSingle;
    int rank = 0;
    int size = 1;
    // Of kNccl; outlives it.
    GpuRank* gpu = nullptr;
    // Of kNccl: told once, on a thread of its own, when the way to the other
    // ranks breaks between two calls.
    std::function<void(const absl::Status&)> failed = nullptr;
  };

  explicit RankCollective(const Options& options) : options_(options) {}

  // Makes what other ranks reach. `host` is an address of this host that they
  // can reach; shared memory needs none. May start a thread.
  absl::Status Open(const std::string& host);

  // After Open.
  v1::CollectiveAddress address() const { return address_; }

  // Joins the other ranks and exchanges known values with them: see
  // TestCollective. After it, get() has a collective that works.
  absl::Status Meet(const v1::CollectiveAddress& others,
                    absl::Duration timeout);

  // With kNccl its tensors lie on the device, else on the host.
  Collective* get() { return collective_; }

  // No call comes any more: `failed` is not called once this has returned, when
  // other ranks leave.
  void Close();

  // See Collective::End. Legal from the beginning, at any time.
  void End(const absl::Status& error);

 private:
  absl::Status Join(const v1::CollectiveAddress& others);
  void Set(std::unique_ptr<Collective> collective);
  void Use(Collective* collective);

  const Options options_;
  v1::CollectiveAddress address_;
  std::unique_ptr<Collective> own_;
  // Its own, or the GPU's. Written under mutex_; its calls are made without.
  Collective* collective_ = nullptr;

  absl::Mutex mutex_;
  absl::Status error_ ABSL_GUARDED_BY(mutex_);  // of End
};

}  // namespace lockstep
