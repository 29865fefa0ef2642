#include "tests/chaos/client.h"

#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/time/clock.h>

#include <algorithm>
#include <string>

#include "common/error_reason.h"
#include "common/grpc_status.h"

namespace lockstep::testing {

Client::Client(const std::shared_ptr<grpc::Channel>& channel,
               const Options& options)
    : options_(options), stub_(v1::Worker::NewStub(channel)) {
  if (options_.deadline != absl::InfiniteDuration()) {
    context_.set_deadline(absl::ToChronoTime(absl::Now() + options_.deadline));
  }
  thread_ = std::thread([this] { Read(); });
}

Client::~Client() {
  context_.TryCancel();
  ReadOn();
  thread_.join();
}

void Client::Read() {
  pthread_setname_np(pthread_self(), "client");
  const auto reader = stub_->Generate(&context_, options_.request);
  v1::WorkerGenerateResponse message;
  while (reader->Read(&message)) {
    absl::MutexLock lock(&mutex_);
    Count(message);
    if (options_.cancel_after_tokens > 0 &&
        tokens_ >= options_.cancel_after_tokens) {
      context_.TryCancel();
    }
    if (options_.stalls && tokens_ > 0) {
      mutex_.Await(absl::Condition(&may_read_on_));
    }
  }
  const grpc::Status status = reader->Finish();
  absl::MutexLock lock(&mutex_);
  status_ = status;
  ended_ = true;
}

void Client::Count(const v1::WorkerGenerateResponse& message) {
  if (summaries_ > 0) ++after_the_end_;
  accepted_ |= message.has_accepted();
  tokens_ += message.delta().token_ids_size();
  finishes_ += message.has_finish();
  summaries_ += message.has_summary();
}

bool Client::WaitForAcceptance(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto seen = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return accepted_ || ended_;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&seen), timeout);
  return accepted_;
}

bool Client::WaitForTokens(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  const auto seen = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return tokens_ > 0 || ended_;
  };
  mutex_.AwaitWithTimeout(absl::Condition(&seen), timeout);
  return tokens_ > 0;
}

// The connection may break, and the client's own limit pass, when all has been
// said; the leader says nothing after it.
bool Client::MayFollowASummary(const grpc::Status& status) const {
  if (status.ok()) return true;
  if (!ErrorReasonOf(FromGrpc(status)).empty()) return false;
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
      return true;
    case grpc::StatusCode::CANCELLED:
      return options_.cancel_after_tokens > 0;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return options_.deadline != absl::InfiniteDuration();
    default:
      return false;
  }
}

bool Client::WaitForEnd(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(absl::Condition(&ended_), timeout);
}

void Client::ReadOn() {
  absl::MutexLock lock(&mutex_);
  may_read_on_ = true;
}

absl::Status Client::CheckEnd() const {
  absl::MutexLock lock(&mutex_);
  if (!ended_) return absl::InternalError("a call has not ended.");
  const std::string what =
      absl::StrCat("a call that ended with status ", status_.error_code(), " (",
                   status_.error_message(), ") had ", tokens_, " tokens, ",
                   finishes_, " finishes, ", summaries_, " summaries and ",
                   after_the_end_, " events after them");
  const uint32_t choices = std::max(1u, options_.request.sampling().n());
  if (summaries_ > 1 || after_the_end_ > 0) {
    return absl::InternalError(absl::StrCat(what, ": more than one end."));
  }
  if (summaries_ == 1) {
    if (finishes_ != choices) {
      return absl::InternalError(absl::StrCat(what, ": a choice did not end."));
    }
    if (MayFollowASummary(status_)) return absl::OkStatus();
    return absl::InternalError(absl::StrCat(what, ": two ends."));
  }
  switch (status_.error_code()) {
    case grpc::StatusCode::UNAVAILABLE:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return absl::OkStatus();
    case grpc::StatusCode::CANCELLED:
      if (options_.cancel_after_tokens > 0) return absl::OkStatus();
      break;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      if (options_.deadline != absl::InfiniteDuration()) {
        return absl::OkStatus();
      }
      break;
    default:
      break;
  }
  return absl::InternalError(absl::StrCat(what, ": not an end it may have."));
}

std::optional<int> Client::failed_rank() const {
  absl::MutexLock lock(&mutex_);
  const absl::Status status = FromGrpc(status_);
  if (ErrorReasonOf(status) != "GROUP_FAILED") return std::nullopt;
  const auto metadata = ErrorMetadataOf(status);
  const auto rank = metadata.find("rank");
  int number = -1;
  if (rank != metadata.end()) (void)absl::SimpleAtoi(rank->second, &number);
  return number;
}

Client::End Client::end() const {
  absl::MutexLock lock(&mutex_);
  if (summaries_ > 0) return End::kSummary;
  switch (status_.error_code()) {
    case grpc::StatusCode::CANCELLED:
      return End::kCancelled;
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return End::kDeadline;
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return End::kRefused;
    default:
      return End::kUnavailable;
  }
}

}  // namespace lockstep::testing
