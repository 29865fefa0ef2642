#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "frontend/generation/generation.h"
#include "frontend/generation/pipeline.h"
#include "frontend/generation/response_sink.h"
#include "frontend/generation/spec.h"
#include "frontend/grpc/stream_watch.h"
#include "frontend/ledger/access_record.h"
#include "proto/inference.pb.h"

namespace lockstep {

// A client may lag behind by this much; then its answer waits for it.
inline constexpr size_t kMaxBufferedMessages = 32;
inline constexpr size_t kMaxBufferedBytes = 256 << 10;

// One client's Generate call: events in, messages out, one write at a time.
//
//   return GenerateReactor::Start(pipeline, limits, bytes, context, …);
//
// Keeps itself alive until gRPC is done with it, which is after the
// generation's terminal event: that event is what calls Finish. A client that
// hangs up cancels the generation at once, one that does not read is cut off.
class GenerateReactor : public grpc::ServerWriteReactor<grpc::ByteBuffer>,
                        public std::enable_shared_from_this<GenerateReactor>,
                        private ResponseSink {
 public:
  // What gRPC is to be given. `pipeline` must outlive the call. See Generation
  // for `parse`, `caller`, whose record is told how the call ends.
  static GenerateReactor* Start(Pipeline* pipeline,
                                const StreamWatch::Limits& limits,
                                size_t request_bytes,
                                grpc::CallbackServerContext* context,
                                Parser<GenerateSpec> parse, Caller caller);

 private:
  GenerateReactor(Pipeline* pipeline, const StreamWatch::Limits& limits,
                  size_t request_bytes, grpc::CallbackServerContext* context,
                  Parser<GenerateSpec> parse, Caller caller);

  // gRPC's side.
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // The clock's, on the thread "timers".
  void Look();
  void LookLater() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CutOff();

  // The generation's side.
  void OnAccepted(AcceptedEvent event) override;
  void OnDelta(DeltaEvent event) override;
  void OnFinish(FinishEvent event) override;
  void OnSummary(SummaryEvent event) override;
  void OnError(absl::Status status, int failovers) override;
  void AwaitRoom(std::function<void()> resume) override;

  void TellFailovers(int failovers);
  void HangUp(const absl::Status& why);
  void Write(const v1::GenerateResponse& response);
  // The message that is to be written now; null: another is being written.
  const grpc::ByteBuffer* Push(grpc::ByteBuffer message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The status to Finish with now, if any: all is written, and all was said.
  std::optional<absl::Status> TakeFinal() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Finishes the call once all that was written has gone out.
  void FinishAfterWrites(absl::Status status);
  void FinishCall(const absl::Status& status);
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Pipeline* const pipeline_;
  const StreamWatch::Limits limits_;
  // Gone once gRPC is done, and so not before Finish.
  grpc::CallbackServerContext* const context_;
  const std::chrono::system_clock::time_point deadline_;
  const std::shared_ptr<AccessRecord> record_;

  // gRPC's Start… and Finish, and `resume`, are called without the lock: they
  // may call back.
  absl::Mutex mutex_;
  // The front is being written.
  std::deque<grpc::ByteBuffer> buffer_ ABSL_GUARDED_BY(mutex_);
  size_t buffered_bytes_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status why_hung_up_ ABSL_GUARDED_BY(mutex_);  // OK while it listens
  std::function<void()> resume_ ABSL_GUARDED_BY(mutex_);
  std::optional<absl::Status> final_status_ ABSL_GUARDED_BY(mutex_);
  StreamWatch watch_ ABSL_GUARDED_BY(mutex_);
  uint64_t timer_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_cutting_off_ ABSL_GUARDED_BY(mutex_) = false;  // Finish must wait
  bool has_finished_ ABSL_GUARDED_BY(mutex_) = false;    // or is about to
  std::shared_ptr<GenerateReactor> self_ ABSL_GUARDED_BY(mutex_);

  Generation generation_;
};

}  // namespace lockstep
