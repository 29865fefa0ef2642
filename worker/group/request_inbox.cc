#include "worker/group/request_inbox.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/error_reason.h"
#include "common/status_macros.h"
#include "worker/group/frame_codec.h"

namespace lockstep {
namespace {

constexpr int64_t kAllChoices = -1;
constexpr int kPartToRetryAfter = 4;

int64_t NumQueuedTokens(const v1::AddRequest& request) {
  return request.prompt_token_ids_size() + request.resume_token_ids_size();
}

}  // namespace

absl::Status RequestInbox::Add(const v1::AddRequest& request) {
  v1::RankMessage message;
  *message.mutable_add() = request;
  if (message.ByteSizeLong() > kMaxMessageBytesOfFrame) {
    return absl::InvalidArgumentError(
        absl::StrCat("the request takes ", message.ByteSizeLong(),
                     " bytes between the ranks; the limit is ",
                     kMaxMessageBytesOfFrame, "."));
  }
  const int64_t tokens = NumQueuedTokens(request);
  const int choices = std::max<int>(request.sampling().n(), 1);

  absl::MutexLock lock(&mutex_);
  LOCKSTEP_RETURN_IF_ERROR(CheckAdd(tokens));
  if (queued_requests_ == 0) pace_.Begin(QueuePace::Clock::now());
  ++queued_requests_;
  queued_tokens_ += tokens;
  Push(message, {.sequences = choices, .tokens = choices * tokens});
  return absl::OkStatus();
}

absl::Status RequestInbox::CheckRoom(const v1::AddRequest& request) const {
  absl::MutexLock lock(&mutex_);
  return CheckAdd(NumQueuedTokens(request));
}

// A quarter of the queue has gone when those that were refused come back, so
// that not all of them find it full again.
absl::Status RequestInbox::CheckAdd(int64_t tokens) const {
  if (!closed_.ok()) return closed_;
  if (stopped_) {
    return MakeError(ErrorReason::kWorkerDraining,
                     "the worker group is stopping; ask another one.");
  }
  if (queued_requests_ >= limits_.max_queued_requests) {
    return MakeError(
        ErrorReason::kQueueFullRequests,
        absl::StrCat("the queue is full: ", queued_requests_,
                     " requests wait and --max_queued_requests is ",
                     limits_.max_queued_requests, "; try again later."),
        {.metadata = {{"limit", absl::StrCat(limits_.max_queued_requests)}},
         .retry_delay = pace_.TimeForRequests(
             std::max(1, queued_requests_ / kPartToRetryAfter))});
  }
  if (queued_tokens_ + tokens > limits_.max_queued_tokens) {
    return MakeError(
        ErrorReason::kQueueFullTokens,
        absl::StrCat("the queue is full: ", queued_tokens_,
                     " prompt tokens wait, the request has ", tokens,
                     " and --max_queued_tokens is ", limits_.max_queued_tokens,
                     "; try again later."),
        {.metadata = {{"limit", absl::StrCat(limits_.max_queued_tokens)},
                      {"tokens", absl::StrCat(tokens)}},
         .retry_delay = pace_.TimeForTokens(
             std::max(tokens, queued_tokens_ / kPartToRetryAfter))});
  }
  return absl::OkStatus();
}

void RequestInbox::Release(const v1::AddRequest& request) {
  const int64_t tokens = NumQueuedTokens(request);
  absl::MutexLock lock(&mutex_);
  --queued_requests_;
  queued_tokens_ -= tokens;
  pace_.Left(tokens, QueuePace::Clock::now());
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
  Push(message, Waiting());
}

// A step takes all that wait, unless they do not fit in one frame.
absl::Status RequestInbox::CheckGrammarRoom(const v1::Grammar& grammar) const {
  const size_t bytes = grammar.ByteSizeLong();
  absl::MutexLock lock(&mutex_);
  if (grammar_bytes_ + bytes <= limits_.max_grammar_bytes) {
    return absl::OkStatus();
  }
  return MakeError(
      ErrorReason::kOverloaded,
      absl::StrCat("grammars of ", grammar_bytes_,
                   " bytes wait for the next step, this one has ", bytes,
                   " and the limit is ", limits_.max_grammar_bytes,
                   "; try again later."),
      {.metadata = {{"limit", absl::StrCat(limits_.max_grammar_bytes)}},
       .retry_delay = absl::Seconds(1)});
}

void RequestInbox::Prepare(uint64_t number, const v1::Grammar& grammar) {
  v1::RankMessage message;
  message.mutable_prepare_grammar()->set_number(number);
  *message.mutable_prepare_grammar()->mutable_grammar() = grammar;
  absl::MutexLock lock(&mutex_);
  if (!closed_.ok() || stopped_) return;
  Push(message, Waiting());
  messages_.back().prepares = number;
  grammar_bytes_ += messages_.back().bytes.size();
  prepares_.emplace(number, std::prev(messages_.end()));
}

// No request that waits names it: it would have a lease.
bool RequestInbox::ReleaseGrammar(uint64_t number) {
  v1::RankMessage message;
  message.mutable_release_grammar()->set_number(number);
  absl::MutexLock lock(&mutex_);
  if (const auto at = prepares_.find(number); at != prepares_.end()) {
    grammar_bytes_ -= at->second->bytes.size();
    messages_.erase(at->second);
    prepares_.erase(at);
    return false;
  }
  if (closed_.ok() && !stopped_) Push(message, Waiting());
  return true;
}

void RequestInbox::Stop() {
  absl::MutexLock lock(&mutex_);
  if (!closed_.ok() || stopped_) return;
  v1::RankMessage message;
  message.mutable_stop();
  Push(message, Waiting());
  stopped_ = true;
}

void RequestInbox::Close(absl::Status status) {
  absl::MutexLock lock(&mutex_);
  if (closed_.ok()) closed_ = std::move(status);
}

absl::Status RequestInbox::Drain(bool idle, size_t max_messages,
                                 std::vector<std::string>* messages) {
  absl::MutexLock lock(&mutex_);
  drained_ = {};
  const auto ready = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !idle || !messages_.empty() || !closed_.ok();
  };
  mutex_.Await(absl::Condition(&ready));
  if (!closed_.ok()) return closed_;
  size_t bytes_left = kMaxBytesOfFrame;
  for (; max_messages > 0 && !messages_.empty(); --max_messages) {
    Message& message = messages_.front();
    if (message.bytes.size() > bytes_left) break;
    bytes_left -= message.bytes.size();
    if (prepares_.erase(message.prepares) > 0) {
      grammar_bytes_ -= message.bytes.size();
    }
    messages->push_back(std::move(message.bytes));
    waiting_.sequences -= message.waiting.sequences;
    waiting_.tokens -= message.waiting.tokens;
    drained_.sequences += message.waiting.sequences;
    drained_.tokens += message.waiting.tokens;
    messages_.pop_front();
  }
  if (messages_.empty()) aborts_.clear();
  return absl::OkStatus();
}

RequestInbox::Waiting RequestInbox::waiting() const {
  absl::MutexLock lock(&mutex_);
  return {.sequences = waiting_.sequences + drained_.sequences,
          .tokens = waiting_.tokens + drained_.tokens};
}

void RequestInbox::Push(const v1::RankMessage& message,
                        const Waiting& waiting) {
  messages_.push_back({message.SerializeAsString(), waiting});
  CHECK_LE(messages_.back().bytes.size(), kMaxMessageBytesOfFrame);
  waiting_.sequences += waiting.sequences;
  waiting_.tokens += waiting.tokens;
}

}  // namespace lockstep
