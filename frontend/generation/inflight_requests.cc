#include "frontend/generation/inflight_requests.h"

#include <absl/strings/str_cat.h>

#include <iterator>

#include "common/error_reason.h"

namespace lockstep {

absl::StatusOr<InflightRequests::Ticket> InflightRequests::Admit(
    size_t bytes, std::function<void(const absl::Status& why)> end) {
  absl::MutexLock lock(&mutex_);
  if (is_closed_) {
    return MakeError(ErrorReason::kGatewayDraining,
                     "the gateway is shutting down and takes no new requests.");
  }
  if (static_cast<int>(requests_.size()) >= limits_.requests) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the gateway already holds ", limits_.requests,
        " requests, the limit of --max_inflight_requests; try again later."));
  }
  if (bytes > limits_.bytes - bytes_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the gateway already holds requests of ", bytes_, " bytes, ", bytes,
        " more would pass the limit of ", limits_.bytes, "; try again later."));
  }
  bytes_ += bytes;
  requests_.push_back({bytes, /*prompt_tokens=*/0, std::move(end)});
  return Ticket(this, std::prev(requests_.end()));
}

absl::Status InflightRequests::AddPromptTokens(std::list<Request>::iterator at,
                                               int64_t tokens) {
  absl::MutexLock lock(&mutex_);
  if (prompt_tokens_ > 0 && tokens > limits_.prompt_tokens - prompt_tokens_) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "the gateway already holds prompts of ", prompt_tokens_, " tokens, ",
        tokens, " more would pass the ", limits_.prompt_tokens,
        " of --max_inflight_prompt_tokens; try again later."));
  }
  at->prompt_tokens += tokens;
  prompt_tokens_ += tokens;
  return absl::OkStatus();
}

void InflightRequests::Close() {
  absl::MutexLock lock(&mutex_);
  is_closed_ = true;
}

void InflightRequests::EndAll(const absl::Status& why) {
  absl::MutexLock lock(&mutex_);
  for (const Request& request : requests_) {
    if (request.end != nullptr) request.end(why);
  }
}

bool InflightRequests::AwaitIdle(absl::Duration timeout) {
  absl::MutexLock lock(&mutex_);
  return mutex_.AwaitWithTimeout(
      absl::Condition(this, &InflightRequests::IsIdle), timeout);
}

int InflightRequests::number() const {
  absl::MutexLock lock(&mutex_);
  return requests_.size();
}

int64_t InflightRequests::prompt_tokens() const {
  absl::MutexLock lock(&mutex_);
  return prompt_tokens_;
}

void InflightRequests::Release(std::list<Request>::iterator at) {
  absl::MutexLock lock(&mutex_);
  prompt_tokens_ -= at->prompt_tokens;
  bytes_ -= at->bytes;
  requests_.erase(at);
}

}  // namespace lockstep
