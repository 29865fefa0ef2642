#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/types/span.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "proto/group.pb.h"
#include "proto/worker.pb.h"
#include "worker/service/request_meters.h"

namespace lockstep {

// What one request has produced and its client has not been sent yet. The
// router's thread puts tokens in, the call's reader takes messages out; each
// message has all tokens of one choice since its last one.
//
// Bounded in positions, which are tokens and those of the prompt whose
// log-probabilities were asked for: a reader that falls behind further has this
// stream fail, and no other. A message has at most kMaxPositionsOfMessage. The
// stream ends once: with a summary and OK, or with the first Fail, which drops
// what has not been taken.
//
//   stream.OnToken(0, token, {});      // router
//   stream.Wake();                     // at the end of the step
//   while (stream.Take(&message) == OutputStream::Next::kMessage) …  // reader
//
// Shared by the router, until the last token, and the call, until its end;
// either may be the last. Any thread.
class OutputStream {
 public:
  // At most 0.4 MB of log-probabilities.
  static constexpr int kMaxPositionsOfMessage = 1024;

  struct Options {
    int max_buffered_positions = 4096;  // at least those of one step
    // Is told what becomes of the request; must outlive this, may be null.
    RequestMeters* meters = nullptr;
    // Whose request it is, for the log: "trace=…"; may be empty.
    std::string caller = {};
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
  // RESOURCE_EXHAUSTED when more is buffered than may be.
  absl::Status OnPromptLogprobs(std::vector<v1::PositionLogprobs> logprobs);
  absl::Status OnToken(uint32_t choice, uint32_t token,
                       std::vector<v1::PositionLogprobs> logprobs);
  void OnEmbedding(absl::Span<const float> values);
  // True when it was the last choice.
  bool OnFinish(uint32_t choice, v1::FinishReason reason,
                std::optional<uint32_t> stop_token_id);

  bool was_scheduled() const;

  // Ends the stream with `status`. The first one is kept; nothing once the
  // summary was taken.
  void Fail(const absl::Status& status);

  // Its reader does not read: ends the stream with `status`, and the call even
  // while a message is on its way.
  void Abandon(const absl::Status& status);
  bool is_abandoned() const { return is_abandoned_; }

  // Keeps something for as long as anyone has the stream. Once.
  void Hold(std::shared_ptr<const void> lease);

  // Notes why the request, or some choices of it, are being aborted. The first
  // cause that is of all choices is kept, else the first.
  void set_abort_cause(v1::AbortCause cause, bool of_all);

  // `reader` is called by Wake; null when the call is over, and when this
  // returns it does not run any more. It must not call set_reader.
  void set_reader(std::function<void()> reader);
  void Wake();
  // True for the first to call it since the last Wake, who then sees to the
  // next one.
  bool ClaimWake() { return !wake_is_claimed_.exchange(true); }

  // Messages taken so far.
  uint64_t num_taken() const;

  // The next message to send. At kEnd, once all was taken, status() is the
  // call's.
  Next Take(v1::WorkerGenerateResponse* message);
  absl::Status status() const;

  struct End {
    absl::Status status;
    v1::AbortCause cause = v1::ABORT_CAUSE_UNSPECIFIED;
    // One a choice; FINISH_REASON_UNSPECIFIED where it has none.
    std::vector<v1::FinishReason> reasons;
  };
  End end() const;

  // For the log: id, tokens, times, how it ended; never text.
  std::string Description() const;

 private:
  using Clock = std::chrono::steady_clock;

  struct Choice {
    std::deque<v1::TokenDelta> deltas;  // not taken yet
    bool has_finished = false;
    bool finish_taken = false;
    uint32_t num_tokens = 0;
    uint32_t num_resumed = 0;  // of them, which an earlier call produced
    std::optional<Clock::time_point> first_token_at;
    Clock::time_point last_token_at;
    v1::FinishReason reason = v1::FINISH_REASON_UNSPECIFIED;
    std::optional<uint32_t> stop_token_id;
  };

  void MeterToken(const Choice& choice, Clock::time_point now) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void MeterChoice(const Choice& choice) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void MeterRequest(Clock::time_point now) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // The choice's last delta, or a new one where that is full.
  v1::TokenDelta& DeltaOf(uint32_t choice)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status CountBuffered(int positions)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Next TakeLocked(v1::WorkerGenerateResponse* message)
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

  std::atomic<bool> wake_is_claimed_ = false;
  std::atomic<bool> is_abandoned_ = false;
  // Held while the reader runs, so that it never runs after its call.
  absl::Mutex reader_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::function<void()> reader_ ABSL_GUARDED_BY(reader_mutex_);

  mutable absl::Mutex mutex_;
  std::vector<Choice> choices_ ABSL_GUARDED_BY(mutex_);
  // Taken in place of the one choice's finish.
  std::optional<v1::Embedding> embedding_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<const void> lease_ ABSL_GUARDED_BY(mutex_);
  int num_buffered_ ABSL_GUARDED_BY(mutex_) = 0;    // positions
  uint64_t num_taken_ ABSL_GUARDED_BY(mutex_) = 0;  // messages
  bool accepted_taken_ ABSL_GUARDED_BY(mutex_) = false;
  bool summary_taken_ ABSL_GUARDED_BY(mutex_) = false;
  int cached_tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  v1::AbortCause abort_cause_ ABSL_GUARDED_BY(mutex_) =
      v1::ABORT_CAUSE_UNSPECIFIED;
  bool abort_is_of_all_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Clock::time_point> scheduled_at_ ABSL_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> first_token_at_ ABSL_GUARDED_BY(mutex_);
  std::optional<Clock::time_point> last_token_at_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
