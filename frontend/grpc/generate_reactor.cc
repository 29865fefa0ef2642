#include "frontend/grpc/generate_reactor.h"

#include <utility>

#include "common/grpc_status.h"
#include "common/wire.h"
#include "frontend/grpc/responses.h"

namespace lockstep {

GenerateReactor::GenerateReactor(Pipeline* pipeline, GenerateSpec spec)
    : generation_(pipeline, std::move(spec), this) {}

void GenerateReactor::Start() {
  StartSendInitialMetadata();
  generation_.Start();
}

void GenerateReactor::OnAccepted(AcceptedEvent event) {
  Write(ToResponse(std::move(event)));
}

void GenerateReactor::OnDelta(DeltaEvent event) {
  Write(ToResponse(std::move(event)));
}

void GenerateReactor::OnFinish(FinishEvent event) {
  Write(ToResponse(std::move(event)));
}

void GenerateReactor::OnSummary(SummaryEvent event) {
  Write(ToResponse(std::move(event)));
  FinishAfterWrites(absl::OkStatus());
}

void GenerateReactor::OnError(absl::Status status) {
  FinishAfterWrites(std::move(status));
}

void GenerateReactor::Write(const v1::GenerateResponse& response) {
  grpc::ByteBuffer message = SerializeMessage(response);
  const grpc::ByteBuffer* first = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (hung_up_) return;
    buffered_bytes_ += message.Length();
    buffer_.push_back(std::move(message));
    if (buffer_.size() == 1) first = &buffer_.front();
  }
  if (first != nullptr) StartWrite(first);
}

void GenerateReactor::FinishAfterWrites(absl::Status status) {
  {
    absl::MutexLock lock(&mutex_);
    if (!buffer_.empty()) {
      final_status_ = std::move(status);
      return;
    }
  }
  Finish(ToGrpc(status));  // *this may be gone afterwards
}

void GenerateReactor::OnWriteDone(bool ok) {
  const grpc::ByteBuffer* next = nullptr;
  std::function<void()> resume;
  std::optional<absl::Status> final_status;
  {
    absl::MutexLock lock(&mutex_);
    buffered_bytes_ -= buffer_.front().Length();
    buffer_.pop_front();
    if (!ok) {
      hung_up_ = true;
      buffer_.clear();
      buffered_bytes_ = 0;
    }
    if (!buffer_.empty()) {
      next = &buffer_.front();
    } else {
      final_status = std::exchange(final_status_, std::nullopt);
    }
    if (HasRoom()) resume = std::exchange(resume_, nullptr);
  }
  if (next != nullptr) StartWrite(next);
  if (resume != nullptr) resume();
  if (final_status.has_value()) Finish(ToGrpc(*final_status));
}

void GenerateReactor::AwaitRoom(std::function<void()> resume) {
  {
    absl::MutexLock lock(&mutex_);
    if (!HasRoom()) {
      resume_ = std::move(resume);
      return;
    }
  }
  resume();
}

void GenerateReactor::OnCancel() {
  generation_.Cancel();
  std::function<void()> resume;
  {
    absl::MutexLock lock(&mutex_);
    hung_up_ = true;
    resume = std::exchange(resume_, nullptr);
  }
  if (resume != nullptr) resume();
}

bool GenerateReactor::HasRoom() const {
  return hung_up_ || (buffer_.size() < kMaxBufferedMessages &&
                      buffered_bytes_ < kMaxBufferedBytes);
}

}  // namespace lockstep
