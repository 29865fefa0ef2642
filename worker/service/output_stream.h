#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/group.pb.h"
#include "proto/worker.pb.h"

namespace lockstep {

// What one request has produced and its client has not been sent yet. The step
// thread puts tokens in, the call's reader takes messages out; each message has
// all tokens of one choice since its last one.
//
// Bounded in tokens: a reader that falls behind further has this stream fail,
// and no other. It ends once: with a summary and OK, or with the first Fail,
// after which what is buffered is dropped.
//
//   stream.OnToken(0, token, {});      // router
//   stream.Wake();                     // at the end of the step
//   while (stream.Take(&message) == OutputStream::Next::kMessage) …  // reader
//
// Shared by the router, until the last token, and the call, until its end;
// either may be the last. Any thread.
class OutputStream {
 public:
  struct Options {
    int max_buffered_tokens = 4096;
  };

  enum class Next { kMessage, kNothing, kEnd };

  // `request` is numbered; `request_id` is the client's name of it.
  OutputStream(std::string request_id,
               std::shared_ptr<const v1::AddRequest> request,
               const Options& options);

  const std::string& request_id() const { return request_id_; }
  const v1::AddRequest& request() const { return *request_; }
  uint64_t number() const { return request_->request(); }

  // What happens to the request, in order; see OutputSink.
  void OnFirstScheduled(int cached_tokens);
  void OnPromptLogprobs(std::vector<v1::PositionLogprobs> logprobs);
  // RESOURCE_EXHAUSTED when more is buffered than may be.
  absl::Status OnToken(uint32_t choice, uint32_t token,
                       std::vector<v1::PositionLogprobs> logprobs);
  // True when it was the last choice.
  bool OnFinish(uint32_t choice, v1::FinishReason reason,
                std::optional<uint32_t> stop_token_id);

  bool was_scheduled() const;

  // Ends the stream with `status`. The first one is kept.
  void Fail(const absl::Status& status);

  // Notes why the request is being aborted, for the log line.
  void set_abort_cause(v1::AbortCause cause);

  // `reader` is called by Wake; null when the call is over, and when this
  // returns it does not run any more. It must not call set_reader.
  void set_reader(std::function<void()> reader);
  void Wake();

  // The next message to send. At kEnd, once all was taken, status() is the
  // call's.
  Next Take(v1::WorkerGenerateResponse* message);
  absl::Status status() const;

  // For the log: id, tokens, times, how it ended; never text.
  std::string Description() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Choice {
    std::optional<v1::TokenDelta> delta;  // not taken yet
    bool has_finished = false;
    bool finish_taken = false;
    uint32_t num_tokens = 0;
    v1::FinishReason reason = v1::FINISH_REASON_UNSPECIFIED;
    std::optional<uint32_t> stop_token_id;
  };

  v1::TokenDelta& DeltaOf(uint32_t choice)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool TakeOf(uint32_t index, v1::WorkerGenerateResponse* message)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FillSummary(v1::Summary* summary) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  v1::Usage UsageOf(uint32_t completion_tokens) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  uint32_t NumTokens() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool HasFinished() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // From the start to `time`, 0 if that has not been.
  int64_t MicrosecondsTo(std::optional<Clock::time_point> time) const;

  const std::string request_id_;
  const std::shared_ptr<const v1::AddRequest> request_;
  const Options options_;
  const Clock::time_point start_ = Clock::now();

  // Held while the reader runs, so that it never runs after its call.
  absl::Mutex reader_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::function<void()> reader_ ABSL_GUARDED_BY(reader_mutex_);

  mutable absl::Mutex mutex_;
  std::vector<Choice> choices_ ABSL_GUARDED_BY(mutex_);
  int num_buffered_tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  bool accepted_taken_ ABSL_GUARDED_BY(mutex_) = false;
  bool summary_taken_ ABSL_GUARDED_BY(mutex_) = false;
  int cached_tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  v1::AbortCause abort_cause_ ABSL_GUARDED_BY(mutex_) =
      v1::ABORT_CAUSE_UNSPECIFIED;
  std::optional<Clock::time_point> scheduled_at_ ABSL_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> first_token_at_ ABSL_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> last_token_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
