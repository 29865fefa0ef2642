#include "frontend/grpc/generate_reactor.h"

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>

#include <utility>

#include "common/grpc_status.h"
#include "common/wire.h"
#include "frontend/grpc/responses.h"
#include "frontend/routing/routed_call.h"

namespace lockstep {

namespace {

// The client's own clock ends a call before ours does, as its request took
// time to come here.
constexpr std::chrono::milliseconds kDeadlineSlack{100};

}  // namespace

GenerateReactor::GenerateReactor(Pipeline* pipeline,
                                 const StreamWatch::Limits& limits,
                                 size_t request_bytes,
                                 grpc::CallbackServerContext* context,
                                 Parser<GenerateSpec> parse, Caller caller)
    : pipeline_(pipeline),
      limits_(limits),
      context_(context),
      deadline_(context->deadline()),
      record_(caller.record),
      watch_(limits, StreamWatch::Clock::now()),
      generation_(pipeline, request_bytes, std::move(parse), this,
                  std::move(caller)) {}

GenerateReactor* GenerateReactor::Start(Pipeline* pipeline,
                                        const StreamWatch::Limits& limits,
                                        size_t request_bytes,
                                        grpc::CallbackServerContext* context,
                                        Parser<GenerateSpec> parse,
                                        Caller caller) {
  const std::shared_ptr<GenerateReactor> reactor(
      new GenerateReactor(pipeline, limits, request_bytes, context,
                          std::move(parse), std::move(caller)));
  {
    absl::MutexLock lock(&reactor->mutex_);
    reactor->self_ = reactor;
    reactor->LookLater();
  }
  reactor->StartSendInitialMetadata();
  reactor->generation_.Start();
  return reactor.get();
}

void GenerateReactor::OnAccepted(AcceptedEvent event) {
  {
    absl::MutexLock lock(&mutex_);
    watch_.OnAccepted();
  }
  Write(ToResponse(std::move(event)));
}

void GenerateReactor::OnDelta(DeltaEvent event) {
  Write(ToResponse(std::move(event)));
}

void GenerateReactor::OnFinish(FinishEvent event) {
  Write(ToResponse(std::move(event)));
}

void GenerateReactor::OnSummary(SummaryEvent event) {
  TellFailovers(event.failovers);
  Write(ToResponse(std::move(event)));
  FinishAfterWrites(absl::OkStatus());
}

void GenerateReactor::OnError(absl::Status status, int failovers) {
  TellFailovers(failovers);
  FinishAfterWrites(std::move(status));
}

void GenerateReactor::TellFailovers(int failovers) {
  if (failovers == 0) return;
  context_->AddTrailingMetadata(kFailoversTrailer, absl::StrCat(failovers));
}

void GenerateReactor::Write(const v1::GenerateResponse& response) {
  grpc::ByteBuffer message = SerializeMessage(response);
  const grpc::ByteBuffer* first = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (!why_hung_up_.ok()) return;
    first = Push(std::move(message));
  }
  if (first != nullptr) StartWrite(first);
}

const grpc::ByteBuffer* GenerateReactor::Push(grpc::ByteBuffer message) {
  buffered_bytes_ += message.Length();
  buffer_.push_back(std::move(message));
  if (buffer_.size() > 1) return nullptr;
  watch_.OnWrite(StreamWatch::Clock::now());
  return &buffer_.front();
}

void GenerateReactor::FinishAfterWrites(absl::Status status) {
  std::optional<absl::Status> final_status;
  {
    absl::MutexLock lock(&mutex_);
    final_status_ = std::move(status);
    final_status = TakeFinal();
  }
  if (final_status.has_value()) FinishCall(*final_status);
}

std::optional<absl::Status> GenerateReactor::TakeFinal() {
  if (!buffer_.empty() || is_cutting_off_ || !final_status_.has_value()) {
    return std::nullopt;
  }
  auto final_status = std::exchange(final_status_, std::nullopt);
  final_status->Update(why_hung_up_);  // not all of the answer was sent
  has_finished_ = true;
  return final_status;
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
    const StreamWatch::Time now = StreamWatch::Clock::now();
    buffered_bytes_ -= buffer_.front().Length();
    buffer_.pop_front();
    watch_.OnWritten(now);
    if (!ok) {
      buffer_.clear();
      buffered_bytes_ = 0;
    }
    if (!buffer_.empty()) {
      next = &buffer_.front();
      watch_.OnWrite(now);
    }
    final_status = TakeFinal();
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

void GenerateReactor::OnDone() {
  std::shared_ptr<GenerateReactor> self;  // outlives the lock
  absl::MutexLock lock(&mutex_);
  pipeline_->groups().timers().Cancel(timer_);
  self = std::move(self_);
}

void GenerateReactor::LookLater() {
  timer_ = pipeline_->groups().timers().At(
      watch_.NextLook(StreamWatch::Clock::now()), [weak = weak_from_this()] {
        if (const auto reactor = weak.lock()) reactor->Look();
      });
}

void GenerateReactor::Look() {
  auto due = StreamWatch::Due::kNothing;
  const grpc::ByteBuffer* heartbeat = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    if (has_finished_) return;
    due = watch_.Look(StreamWatch::Clock::now());
    if (due == StreamWatch::Due::kHeartbeat && why_hung_up_.ok()) {
      heartbeat = Push(SerializeMessage(ToResponse(DeltaEvent())));
    }
    is_cutting_off_ = due == StreamWatch::Due::kCut;
    if (!is_cutting_off_) LookLater();
  }
  if (heartbeat != nullptr) StartWrite(heartbeat);
  if (due == StreamWatch::Due::kCut) CutOff();
  if (due == StreamWatch::Due::kEnd) {
    HangUp(absl::DeadlineExceededError(
        TooLateMessage(absl::FromChrono(limits_.total))));
  }
}

void GenerateReactor::CutOff() {
  HangUp(absl::ResourceExhaustedError(absl::StrCat(
      "the client took nothing of the answer for ",
      absl::FormatDuration(absl::FromChrono(limits_.write)), ".")));
  context_->TryCancel();  // ends the write that is pending
  std::optional<absl::Status> final_status;
  {
    absl::MutexLock lock(&mutex_);
    is_cutting_off_ = false;
    final_status = TakeFinal();
  }
  if (final_status.has_value()) FinishCall(*final_status);
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
