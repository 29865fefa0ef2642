#pragma once

#include <absl/functional/function_ref.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include "worker/collectives/collective.h"
#include "worker/collectives/nccl_library.h"
#include "worker/device/cuda_event.h"
#include "worker/device/cuda_stream.h"

namespace lockstep {

// Ranks with a GPU each, over NCCL.
//
//   NcclCollective collective(nccl, stream, {.rank = rank, .size = size});
//   LOCKSTEP_ASSIGN_OR_RETURN(const NcclApi::UniqueId id,
//                             NcclCollective::NewId(nccl));  // rank 0
//   …id goes to the other ranks…
//   LOCKSTEP_RETURN_IF_ERROR(collective.Join(id, timeout));
//
// Tensors lie in the memory of the stream's device. A call is put on the stream
// and waited for; a step's calls are only put there, and what is recorded after
// them is awaited. What waits looks at the stream, at NCCL's asynchronous
// errors and at the time limit, as the communicator is non-blocking: so a call
// that hangs is seen. All ranks get the same bits; unlike those of the other
// implementations they are not of the sum in rank order.
//
// A thread, "nccl-watch", looks for asynchronous errors between calls: the
// first one aborts, and is told once to `failed`. NCCL names no rank, so no
// message says which did not come: it names the call, and the rank and device
// that made it.
class NcclCollective final : public Collective {
 public:
  static absl::StatusOr<NcclApi::UniqueId> NewId(const NcclLibrary* nccl);

  struct Options {
    int rank = 0;
    int size = 1;
    absl::Duration watch_period = absl::Milliseconds(200);
    // On the thread "nccl-watch", whose end the destructor awaits.
    std::function<void(const absl::Status&)> failed = nullptr;
  };

  // Library and stream must outlive it, and graphs that captured its calls must
  // not.
  NcclCollective(const NcclLibrary* nccl, CudaStream* stream,
                 const Options& options);

  // Before any call: blocks until all ranks have joined. DEADLINE_EXCEEDED when
  // they have not in time; what Abort left, be it before this.
  absl::Status Join(const NcclApi::UniqueId& id, absl::Duration timeout);

  ~NcclCollective() override;

  // No call comes any more: `failed` is not called once this has returned.
  void StopWatching();

  int rank() const override { return options_.rank; }
  int size() const override { return options_.size; }
  bool sums_in_rank_order() const override { return false; }
  absl::Status AllReduceSum(absl::Span<float> data) override;
  absl::Status AllGather(absl::Span<const float> in,
                         absl::Span<float> out) override;

  // The same, put on the stream: they run when it comes to them.
  absl::Status EnqueueAllReduceSum(absl::Span<float> data);
  absl::Status EnqueueAllGather(absl::Span<const float> in,
                                absl::Span<float> out);
  // Until `event`, which was recorded on the stream, has happened.
  absl::Status Await(const CudaEvent& event);

  void SetTimeout(absl::Duration timeout) override { timeout_ = timeout; }
  // Of this rank alone: others learn of it by the group, or by their limits.
  void End(const absl::Status& error) override;
  int64_t num_all_reduces() const override { return num_all_reduces_; }
  int64_t num_all_gathers() const override { return num_all_gathers_; }

 private:
  using Clock = std::chrono::steady_clock;
  using Enqueue = absl::FunctionRef<NcclApi::Result(NcclApi::Communicator)>;

  absl::Status Begin(const NcclApi::UniqueId& id);
  // Waits until `done` says so, nothing of NCCL's is in progress, or the end.
  absl::Status WaitFor(const char* call, const std::string& what,
                       absl::Duration timeout,
                       absl::FunctionRef<absl::StatusOr<bool>()> done);
  // Whether NCCL is still at something; an asynchronous error, or what the
  // abort left.
  absl::StatusOr<bool> InProgress();
  // "ncclAllReduce of rank 1"
  std::string Named(absl::string_view call) const;
  absl::Status Check(NcclApi::Result result, absl::string_view call) const;
  absl::Status Put(const char* call, uint64_t operation,
                   const Enqueue& enqueue);
  absl::Status Start(const char* call, const Enqueue& enqueue);
  // The end of all that the stream has, which `what` is.
  absl::Status AwaitStream(const char* call, const std::string& what);
  // What could not end leaves nothing that another call could follow.
  absl::Status EndUnless(const absl::Status& status);
  void Watch();

  const NcclLibrary* const nccl_;
  CudaStream* const stream_;
  const Options options_;
  absl::Duration timeout_ = absl::InfiniteDuration();
  std::atomic<int64_t> num_all_reduces_ = 0;
  std::atomic<int64_t> num_all_gathers_ = 0;

  std::mutex mutex_;  // of all below; absl's waits follow the wall clock
  std::condition_variable changed_;
  NcclApi::Communicator communicator_ = nullptr;
  absl::Status ended_;
  bool is_watched_ = true;

  std::thread watch_;
};

}  // namespace lockstep
