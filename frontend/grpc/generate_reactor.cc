#include "frontend/grpc/generate_reactor.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "common/grpc_status.h"
#include "common/wire.h"
#include "frontend/grpc/responses.h"

namespace lockstep {

namespace {

// The client's own clock ends a call before ours does, as its request took
// time to come here.
constexpr std::chrono::milliseconds kDeadlineSlack{100};

}  // namespace

GenerateReactor::GenerateReactor(Pipeline* pipeline, size_t request_bytes,
                                 grpc::CallbackServerContext* context,
                                 Parser<GenerateSpec> parse, Caller caller)
    : context_(context),
      deadline_(context->deadline()),
      record_(caller.record),
      generation_(pipeline, request_bytes, std::move(parse), this,
                  std::move(caller)) {}

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
  if (event.failovers > 0) {
    context_->AddTrailingMetadata(kFailoversTrailer,
                                  absl::StrCat(event.failovers));
  }
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
    if (!why_hung_up_.ok()) return;
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
    status.Update(why_hung_up_);
  }
  FinishCall(status);
}

// *this may be gone afterwards.
void GenerateReactor::FinishCall(const absl::Status& status) {
  record_->SetGrpcStatus(status);
  Finish(ToGrpc(status));
}

void GenerateReactor::OnWriteDone(bool ok) {
  if (!ok) HangUp(absl::CancelledError("a message could not be sent."));
  const grpc::ByteBuffer* next = nullptr;
  std::function<void()> resume;
  std::optional<absl::Status> final_status;
  {
    absl::MutexLock lock(&mutex_);
    buffered_bytes_ -= buffer_.front().Length();
    buffer_.pop_front();
    if (!ok) {
      buffer_.clear();
      buffered_bytes_ = 0;
    }
    if (!buffer_.empty()) {
      next = &buffer_.front();
    } else {
      final_status = std::exchange(final_status_, std::nullopt);
      // Not all of the answer was sent.
      if (final_status.has_value()) final_status->Update(why_hung_up_);
    }
    if (HasRoom()) resume = std::exchange(resume_, nullptr);
  }
  if (next != nullptr) StartWrite(next);
  if (resume != nullptr) resume();
  if (final_status.has_value()) FinishCall(*final_status);
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
  const bool is_late =
      std::chrono::system_clock::now() >= deadline_ - kDeadlineSlack;
  HangUp(is_late ? absl::DeadlineExceededError(
                       "the deadline of the call passed before the answer was "
                       "complete.")
                 : absl::CancelledError("the client cancelled the call."));
}

void GenerateReactor::HangUp(const absl::Status& why) {
  generation_.Cancel(why);
  std::function<void()> resume;
  {
    absl::MutexLock lock(&mutex_);
    why_hung_up_.Update(why);
    resume = std::exchange(resume_, nullptr);
  }
  if (resume != nullptr) resume();
}

bool GenerateReactor::HasRoom() const {
  return !why_hung_up_.ok() || (buffer_.size() < kMaxBufferedMessages &&
                                buffered_bytes_ < kMaxBufferedBytes);
}

}  // namespace lockstep
