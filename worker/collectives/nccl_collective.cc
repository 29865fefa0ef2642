#include "worker/collectives/nccl_collective.h"

#include <absl/strings/str_cat.h>
#include <pthread.h>

#include "common/status_macros.h"
#include "worker/collectives/operation.h"

namespace lockstep {
namespace {

// How often a call that waits looks: often at first, as most take microseconds.
constexpr auto kFirstLook = std::chrono::microseconds(2);
constexpr auto kLongestLook = std::chrono::milliseconds(1);

}  // namespace

absl::StatusOr<NcclApi::UniqueId> NcclCollective::NewId(
    const NcclLibrary* nccl) {
  NcclApi::UniqueId id;
  LOCKSTEP_RETURN_IF_ERROR(nccl->Check(nccl->api().get_unique_id(&id),
                                       "ncclGetUniqueId", "this machine"));
  return id;
}

NcclCollective::NcclCollective(const NcclLibrary* nccl, CudaStream* stream,
                               const Options& options)
    : nccl_(nccl), stream_(stream), options_(options) {}

NcclCollective::~NcclCollective() {
  StopWatching();
  End(absl::CancelledError("destroyed"));
}

void NcclCollective::StopWatching() {
  {
    const std::lock_guard lock(mutex_);
    is_watched_ = false;
    changed_.notify_all();
  }
  if (watch_.joinable()) watch_.join();
}

absl::Status NcclCollective::Join(const NcclApi::UniqueId& id,
                                  absl::Duration timeout) {
  absl::Status status = Begin(id);
  if (status.ok()) {
    status = WaitFor(
        "ncclCommInitRankConfig",
        absl::StrCat("the start of NCCL with ", options_.size, " ranks"),
        timeout, []() -> absl::StatusOr<bool> { return true; });
  }
  if (!status.ok()) {
    End(status);
    return status;
  }
  watch_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "nccl-watch");
    Watch();
  });
  return absl::OkStatus();
}

// Under the lock, as an abort may come any time; being non-blocking it returns
// at once.
absl::Status NcclCollective::Begin(const NcclApi::UniqueId& id) {
  const std::lock_guard lock(mutex_);
  if (!ended_.ok()) return ended_;
  NcclApi::Config config;
  config.blocking = 0;
  const NcclApi::Result result = nccl_->api().init_rank(
      &communicator_, options_.size, id, options_.rank, &config);
  if (result == NcclApi::kInProgress) return absl::OkStatus();
  return Check(result, "ncclCommInitRankConfig");
}

absl::Status NcclCollective::AllReduceSum(absl::Span<float> data) {
  LOCKSTEP_RETURN_IF_ERROR(EnqueueAllReduceSum(data));
  return AwaitStream("ncclAllReduce",
                     OperationName(ReduceOperation(data.size())));
}

absl::Status NcclCollective::AllGather(absl::Span<const float> in,
                                       absl::Span<float> out) {
  LOCKSTEP_RETURN_IF_ERROR(EnqueueAllGather(in, out));
  return AwaitStream("ncclAllGather",
                     OperationName(GatherOperation(in.size())));
}

absl::Status NcclCollective::EnqueueAllReduceSum(absl::Span<float> data) {
  ++num_all_reduces_;
  return Put("ncclAllReduce", ReduceOperation(data.size()),
             [&](NcclApi::Communicator communicator) {
               return nccl_->api().all_reduce(
                   data.data(), data.data(), data.size(), NcclApi::kFloat32,
                   NcclApi::kSum, communicator, stream_->handle());
             });
}

absl::Status NcclCollective::EnqueueAllGather(absl::Span<const float> in,
                                              absl::Span<float> out) {
  ++num_all_gathers_;
  return Put("ncclAllGather", GatherOperation(in.size()),
             [&](NcclApi::Communicator communicator) {
               return nccl_->api().all_gather(in.data(), out.data(), in.size(),
                                              NcclApi::kFloat32, communicator,
                                              stream_->handle());
             });
}

absl::Status NcclCollective::Await(const CudaEvent& event) {
  return EndUnless(WaitFor("NCCL", "a step", timeout_,
                           [&event] { return event.Happened(); }));
}

absl::Status NcclCollective::AwaitStream(const char* call,
                                         const std::string& what) {
  return EndUnless(
      WaitFor(call, what, timeout_, [this] { return stream_->Done(); }));
}

// NCCL may put a call on the stream from a thread of its own; the next may
// follow when it has.
absl::Status NcclCollective::Put(const char* call, uint64_t operation,
                                 const Enqueue& enqueue) {
  absl::Status status = Start(call, enqueue);
  if (status.ok()) {
    status = WaitFor(call, OperationName(operation), timeout_,
                     []() -> absl::StatusOr<bool> { return true; });
  }
  return EndUnless(status);
}

absl::Status NcclCollective::EndUnless(const absl::Status& status) {
  if (!status.ok()) End(status);
  return status;
}

// Under the lock, so that no abort frees the communicator meanwhile; being
// non-blocking it returns at once.
absl::Status NcclCollective::Start(const char* call, const Enqueue& enqueue) {
  const std::lock_guard lock(mutex_);
  if (!ended_.ok()) return ended_;
  const NcclApi::Result result = enqueue(communicator_);
  if (result == NcclApi::kInProgress) return absl::OkStatus();
  return Check(result, call);
}

absl::Status NcclCollective::WaitFor(
    const char* call, const std::string& what, absl::Duration timeout,
    absl::FunctionRef<absl::StatusOr<bool>()> done) {
  const bool limited = timeout < absl::InfiniteDuration();
  const Clock::time_point end =
      Clock::now() + (limited ? absl::ToChronoNanoseconds(timeout)
                              : std::chrono::nanoseconds(0));
  for (Clock::duration look = kFirstLook;; look *= 2) {
    LOCKSTEP_ASSIGN_OR_RETURN(const bool in_progress, InProgress());
    if (!in_progress) {
      LOCKSTEP_ASSIGN_OR_RETURN(const bool is_done, done());
      if (is_done) return absl::OkStatus();
    }
    if (limited && Clock::now() >= end) {
      return absl::DeadlineExceededError(
          absl::StrCat(Named(call), " on ", stream_->device().name(), ": ",
                       what, ", for which not all ranks came within ",
                       absl::FormatDuration(timeout), "."));
    }
    if (look > kLongestLook) look = kLongestLook;
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, look, [this] { return !ended_.ok(); });
  }
}

absl::StatusOr<bool> NcclCollective::InProgress() {
  const std::lock_guard lock(mutex_);
  if (!ended_.ok()) return ended_;
  NcclApi::Result state = NcclApi::kSuccess;
  LOCKSTEP_RETURN_IF_ERROR(
      Check(nccl_->api().async_error(communicator_, &state),
            "ncclCommGetAsyncError"));
  if (state == NcclApi::kInProgress) return true;
  LOCKSTEP_RETURN_IF_ERROR(Check(state, "NCCL"));
  return false;
}

absl::Status NcclCollective::Check(NcclApi::Result result,
                                   absl::string_view call) const {
  return nccl_->Check(result, Named(call), stream_->device().name());
}

std::string NcclCollective::Named(absl::string_view call) const {
  return absl::StrCat(call, " of rank ", options_.rank);
}

// What is on the stream ends with the communicator.
void NcclCollective::End(const absl::Status& error) {
  const std::lock_guard lock(mutex_);
  if (!ended_.ok()) return;
  ended_ = error;
  if (communicator_ != nullptr) nccl_->api().abort(communicator_);
  communicator_ = nullptr;
  changed_.notify_all();
}

void NcclCollective::Watch() {
  const auto period = absl::ToChronoNanoseconds(options_.watch_period);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, period,
                            [this] { return !is_watched_ || !ended_.ok(); })) {
    lock.unlock();
    const absl::Status status = InProgress().status();
    if (!status.ok()) {
      End(status);
      if (options_.failed) options_.failed(status);
      return;
    }
    lock.lock();
  }
}

}  // namespace lockstep
