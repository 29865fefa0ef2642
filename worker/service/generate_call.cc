#include "worker/service/generate_call.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <chrono>
#include <utility>

#include "common/error_reason.h"
#include "common/grpc_status.h"
#include "common/wire.h"
#include "proto/worker.pb.h"

namespace lockstep {
namespace {

using Reactor = grpc::ServerWriteReactor<grpc::ByteBuffer>;

// The deadline as read here is later than the client's own by what the request
// took to arrive, so the client may hang up before it.
constexpr auto kDeadlineSlack = std::chrono::milliseconds(50);

class GenerateCall final : public Reactor {
 public:
  GenerateCall(grpc::CallbackServerContext* context,
               std::shared_ptr<OutputStream> stream, Admission* admission)
      : context_(context),
        deadline_(DeadlineOf(*context)),
        stream_(std::move(stream)),
        admission_(admission) {
    StartSendInitialMetadata();
    stream_->set_reader([this] { WriteNext(); });
    stream_->Wake();
  }

  void OnWriteDone(bool ok) override {
    {
      absl::MutexLock lock(&mutex_);
      is_writing_ = false;
      // The client is gone; OnCancel comes, or has come.
      if (!ok && !is_cancelled_) return;
    }
    WriteNext();
  }

  void OnCancel() override {
    if (Admission::Clock::now() >= deadline_ - kDeadlineSlack) {
      admission_->Expire(*stream_);
    } else {
      admission_->Abort(*stream_, {}, v1::CLIENT_CANCELLED);
      stream_->Fail(
          MakeError(ErrorReason::kClientCancelled, "the client is gone."));
    }
    {
      absl::MutexLock lock(&mutex_);
      is_cancelled_ = true;
    }
    WriteNext();
  }

  void OnDone() override {
    stream_->set_reader(nullptr);
    admission_->Leave(*stream_);
    delete this;
  }

 private:
  // Once it has begun a write or the end, another thread may go on, up to the
  // end of this.
  void WriteNext() {
    OutputStream::Next next;
    {
      absl::ReleasableMutexLock lock(&mutex_);
      if (is_writing_ || has_ended_) {
        const bool hangs = is_writing_ && stream_->is_abandoned();
        lock.Release();
        if (hangs) context_->TryCancel();
        return;
      }
      v1::WorkerGenerateResponse message;
      next = stream_->Take(&message);
      is_writing_ = next == OutputStream::Next::kMessage;
      has_ended_ = next == OutputStream::Next::kEnd;
      if (is_writing_) bytes_ = SerializeMessage(message);
    }
    if (next == OutputStream::Next::kMessage) StartWrite(&bytes_);
    if (next == OutputStream::Next::kEnd) Finish(ToGrpc(stream_->status()));
  }

  grpc::CallbackServerContext* const context_;
  const Admission::Clock::time_point deadline_;
  const std::shared_ptr<OutputStream> stream_;
  Admission* const admission_;
  grpc::ByteBuffer bytes_;  // being written

  absl::Mutex mutex_;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

Reactor* StartGenerateCall(grpc::CallbackServerContext* context,
                           std::shared_ptr<OutputStream> stream,
                           Admission* admission) {
  return new GenerateCall(context, std::move(stream), admission);
}

Admission::Clock::time_point DeadlineOf(
    const grpc::CallbackServerContext& context) {
  const auto deadline = context.deadline();
  if (deadline == std::chrono::system_clock::time_point::max()) {
    return Admission::kNoDeadline;
  }
  return Admission::Clock::now() +
         (deadline - std::chrono::system_clock::now());
}

Reactor* RefuseGenerateCall(const absl::Status& status) {
  return new RefusedStream<grpc::ByteBuffer>(status);
}

}  // namespace lockstep
