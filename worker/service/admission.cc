#include "worker/service/admission.h"

#include <absl/strings/str_cat.h>

#include <random>
#include <utility>
#include <vector>

#include "common/status_macros.h"

namespace lockstep {
namespace {

std::string RandomPrefix() {
  std::random_device random;
  return absl::StrCat("req-", absl::Hex(random(), absl::kZeroPad8), "-");
}

}  // namespace

Admission::Admission(RequestInbox* inbox, OutputRouter* router,
                     const OutputStream::Options& options)
    : inbox_(inbox),
      router_(router),
      options_(options),
      id_prefix_(RandomPrefix()),
      closed_(absl::UnavailableError("the worker is starting.")) {}

bool Admission::Open() {
  absl::MutexLock lock(&mutex_);
  if (closed_for_good_) return false;
  closed_ = absl::OkStatus();
  return true;
}

void Admission::Close(absl::string_view why) {
  absl::MutexLock lock(&mutex_);
  closed_ = absl::UnavailableError(why);
  closed_for_good_ = true;
}

absl::StatusOr<std::shared_ptr<OutputStream>> Admission::Submit(
    const std::string& request_id, v1::AddRequest request) {
  absl::MutexLock lock(&mutex_);
  LOCKSTEP_RETURN_IF_ERROR(closed_);
  LOCKSTEP_ASSIGN_OR_RETURN(auto stream,
                            SubmitLocked(request_id, std::move(request)));
  open_calls_.emplace(stream->number(), stream);
  return stream;
}

absl::StatusOr<std::shared_ptr<OutputStream>> Admission::SubmitAnyway(
    const std::string& request_id, v1::AddRequest request) {
  absl::MutexLock lock(&mutex_);
  return SubmitLocked(request_id, std::move(request));
}

absl::StatusOr<std::shared_ptr<OutputStream>> Admission::SubmitLocked(
    const std::string& request_id, v1::AddRequest request) {
  const uint64_t number = last_number_ + 1;
  request.set_request(number);
  auto stream = std::make_shared<OutputStream>(
      request_id.empty() ? absl::StrCat(id_prefix_, number) : request_id,
      std::make_shared<const v1::AddRequest>(std::move(request)), options_);
  LOCKSTEP_RETURN_IF_ERROR(router_->Register(stream));
  if (const absl::Status added = inbox_->Add(stream->request()); !added.ok()) {
    router_->Unregister(*stream);
    return added;
  }
  last_number_ = number;
  return stream;
}

void Admission::Abort(OutputStream& stream, absl::Span<const uint32_t> choices,
                      v1::AbortCause cause) {
  v1::AbortSequences abort;
  abort.set_request(stream.number());
  abort.mutable_choices()->Assign(choices.begin(), choices.end());
  abort.set_cause(cause);
  stream.set_abort_cause(cause);
  absl::MutexLock lock(&mutex_);
  inbox_->Abort(abort);
}

void Admission::Leave(const OutputStream& stream) {
  absl::MutexLock lock(&mutex_);
  open_calls_.erase(stream.number());
}

void Admission::EndCalls(const absl::Status& status) {
  std::vector<std::shared_ptr<OutputStream>> streams;
  {
    absl::MutexLock lock(&mutex_);
    calls_were_ended_ = true;
    for (const auto& [number, stream] : open_calls_) streams.push_back(stream);
  }
  for (const auto& stream : streams) {
    stream->Fail(status);
    stream->Wake();
  }
}

void Admission::WaitForCalls() {
  absl::MutexLock lock(&mutex_);
  const auto done = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return open_calls_.empty() || calls_were_ended_;
  };
  mutex_.Await(absl::Condition(&done));
}

}  // namespace lockstep
