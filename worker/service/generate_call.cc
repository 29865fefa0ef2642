#include "worker/service/generate_call.h"

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>

#include <chrono>
#include <utility>

#include "common/grpc_status.h"

namespace lockstep {
namespace {

using Reactor = grpc::ServerWriteReactor<v1::WorkerGenerateResponse>;

class GenerateCall final : public Reactor {
 public:
  GenerateCall(grpc::CallbackServerContext* context,
               std::shared_ptr<OutputStream> stream, Admission* admission)
      : deadline_(context->deadline()),
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
    const bool is_late = std::chrono::system_clock::now() >= deadline_;
    admission_->Abort(*stream_, {},
                      is_late ? v1::DEADLINE : v1::CLIENT_CANCELLED);
    stream_->Fail(
        is_late ? absl::DeadlineExceededError("the call's deadline has passed.")
                : absl::CancelledError("the client is gone."));
    {
      absl::MutexLock lock(&mutex_);
      is_cancelled_ = true;
    }
    WriteNext();
  }

  void OnDone() override {
    stream_->set_reader(nullptr);
    delete this;
  }

 private:
  void WriteNext() {
    absl::MutexLock lock(&mutex_);
    if (is_writing_ || has_ended_) return;
    switch (stream_->Take(&message_)) {
      case OutputStream::Next::kMessage:
        is_writing_ = true;
        StartWrite(&message_);
        return;
      case OutputStream::Next::kNothing:
        return;
      case OutputStream::Next::kEnd:
        has_ended_ = true;
        Finish(ToGrpc(stream_->status()));
        return;
    }
  }

  const std::chrono::system_clock::time_point deadline_;
  const std::shared_ptr<OutputStream> stream_;
  Admission* const admission_;
  v1::WorkerGenerateResponse message_;  // being written

  absl::Mutex mutex_;
  bool is_writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  bool has_ended_ ABSL_GUARDED_BY(mutex_) = false;
};

class RefusedCall final : public Reactor {
 public:
  explicit RefusedCall(const absl::Status& status) { Finish(ToGrpc(status)); }
  void OnDone() override { delete this; }
};

}  // namespace

Reactor* StartGenerateCall(grpc::CallbackServerContext* context,
                           std::shared_ptr<OutputStream> stream,
                           Admission* admission) {
  return new GenerateCall(context, std::move(stream), admission);
}

Reactor* RefuseGenerateCall(const absl::Status& status) {
  return new RefusedCall(status);
}

}  // namespace lockstep
