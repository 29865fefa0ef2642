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
  GenerateCall(grpc::CallbackServerContext* context, Admission* admission)
      : context_(context),
        deadline_(DeadlineOf(*context)),
        admission_(admission) {}

  // Once. This may be gone afterwards.
  void Begin(absl::StatusOr<std::shared_ptr<OutputStream>> stream) {
    if (!stream.ok()) return Finish(ToGrpc(stream.status()));
    bool is_late = false;
    {
      absl::MutexLock lock(&mutex_);
      stream_ = *stream;
      is_late = client_is_gone_;
    }
    if (is_late) EndStream(**stream);
    StartSendInitialMetadata();
    (*stream)->set_reader([this] { WriteNext(); });
    (*stream)->Wake();
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
    std::shared_ptr<OutputStream> stream;
    {
      absl::MutexLock lock(&mutex_);
      client_is_gone_ = true;
      stream = stream_;
    }
    if (stream == nullptr) return;  // Begin sees to it
    EndStream(*stream);
    {
      absl::MutexLock lock(&mutex_);
      is_cancelled_ = true;
    }
    WriteNext();
  }

  void OnDone() override {
    if (const auto stream = Stream()) {
      stream->set_reader(nullptr);
      admission_->Leave(*stream);
    }
    delete this;
  }

 private:
  std::shared_ptr<OutputStream> Stream() {
    absl::MutexLock lock(&mutex_);
    return stream_;
  }

  // The client is gone.
  void EndStream(OutputStream& stream) {
    if (Admission::Clock::now() >= deadline_ - kDeadlineSlack) {
      return admission_->Expire(stream);
    }
    admission_->End(
        stream, v1::CLIENT_CANCELLED,
        MakeError(ErrorReason::kClientCancelled, "the client is gone."));
  }

  // Once it has begun a write or the end, another thread may go on, up to the
  // end of this.
  void WriteNext() {
    OutputStream::Next next;
    absl::Status status;
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
      if (has_ended_) status = stream_->status();
    }
    if (next == OutputStream::Next::kMessage) StartWrite(&bytes_);
    if (next == OutputStream::Next::kEnd) Finish(ToGrpc(status));
  }

  grpc::CallbackServerContext* const context_;
  const Admission::Clock::time_point deadline_;
  Admission* const admission_;
  grpc::ByteBuffer bytes_;  // being written

  absl::Mutex mutex_;
  std::shared_ptr<OutputStream> stream_ ABSL_GUARDED_BY(mutex_);  // once begun
  bool client_is_gone_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace

Reactor* StartGenerateCall(grpc::CallbackServerContext* context,
                           Admission* admission,
                           const std::function<void(OnSubmitted)>& submit) {
  auto* const call = new GenerateCall(context, admission);
  submit([call](absl::StatusOr<std::shared_ptr<OutputStream>> stream) {
    call->Begin(std::move(stream));
  });
  return call;
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

}  // namespace lockstep
