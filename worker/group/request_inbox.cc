#include "worker/group/request_inbox.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <iterator>

namespace lockstep {
namespace {

constexpr int64_t kAllChoices = -1;

int64_t NumQueuedTokens(const v1::AddRequest& request) {
  return request.prompt_token_ids_size() + request.resume_token_ids_size();
}

}  // namespace

absl::Status RequestInbox::Add(const v1::AddRequest& request) {
  v1::RankMessage message;
  *message.mutable_add() = request;
  const int64_t tokens = NumQueuedTokens(request);

  absl::MutexLock lock(&mutex_);
  if (!closed_.ok()) return closed_;
  if (stopped_) return absl::UnavailableError("the worker group is stopping.");
  if (queued_.requests >= limits_.max_queued_requests) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the queue is full: ", queued_.requests,
                     " requests wait and --max_queued_requests is ",
                     limits_.max_queued_requests, "; try again later."));
  }
  if (queued_.tokens + tokens > limits_.max_queued_tokens) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the queue is full: ", queued_.tokens,
                     " prompt tokens wait, the request has ", tokens,
                     " and --max_queued_tokens is ", limits_.max_queued_tokens,
                     "; try again later."));
  }
  ++queued_.requests;
  queued_.tokens += tokens;
  Push(message);
  return absl::OkStatus();
}

void RequestInbox::Release(const v1::AddRequest& request) {
  absl::MutexLock lock(&mutex_);
  --queued_.requests;
  queued_.tokens -= NumQueuedTokens(request);
}

void RequestInbox::Abort(const v1::AbortSequences& abort) {
  absl::MutexLock lock(&mutex_);
  if (!closed_.ok() || stopped_) return;
  v1::AbortSequences news = abort;
  news.clear_choices();
  const auto is_new =
      [&](int64_t choice) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return !aborts_.contains({abort.request(), kAllChoices}) &&
               aborts_.emplace(abort.request(), choice).second;
      };
  for (const uint32_t choice : abort.choices()) {
    if (is_new(choice)) news.add_choices(choice);
  }
  const bool all = abort.choices().empty() && is_new(kAllChoices);
  if (!all && news.choices().empty()) return;
  v1::RankMessage message;
  *message.mutable_abort() = std::move(news);
  Push(message);
}

void RequestInbox::Stop() {
  absl::MutexLock lock(&mutex_);
  if (!closed_.ok() || stopped_) return;
  v1::RankMessage message;
  message.mutable_stop();
  Push(message);
  stopped_ = true;
}

void RequestInbox::Close(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  if (closed_.ok()) closed_ = std::move(status);
}

absl::Status RequestInbox::Drain(bool idle, size_t max_messages,
                                 std::vector<std::string>* messages) {
  absl::MutexLock lock(&mutex_);
  const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !idle || !messages_.empty() || !closed_.ok();
  };
  mutex_.Await(absl::Condition(&ready));
  if (!closed_.ok()) return closed_;
  const auto end = messages_.begin() + std::min(max_messages, messages_.size());
  messages->insert(messages->end(), std::make_move_iterator(messages_.begin()),
                   std::make_move_iterator(end));
  messages_.erase(messages_.begin(), end);
  if (messages_.empty()) aborts_.clear();
  return absl::OkStatus();
}

RequestInbox::Queued RequestInbox::queued() const {
  absl::MutexLock lock(&mutex_);
  return queued_;
}

void RequestInbox::Push(const v1::RankMessage& message) {
  messages_.push_back(message.SerializeAsString());
}

}  // namespace lockstep
