#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <absl/types/span.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "proto/group.pb.h"
#include "worker/core/output_sink.h"
#include "worker/group/request_inbox.h"
#include "worker/service/output_queue.h"
#include "worker/service/output_stream.h"

namespace lockstep {

// The leader's sink: brings what the scheduler says about sequences to their
// requests' streams, and knows which requests are live. A request is live from
// Register until its last choice has ended in the scheduler, whatever became of
// its client. Its end is one line in the log.
//
// The OutputSink's methods and EndStep are the step thread's; they note what
// was said and, once a step, hand it to the thread "streams", which tells the
// streams and wakes their readers. The others are any thread's.
class OutputRouter final : public OutputSink {
 public:
  // `inbox`, which must outlive this, is told when a request no longer waits
  // and when a stream's client is too slow.
  explicit OutputRouter(RequestInbox* inbox);

  // ALREADY_EXISTS when a request of this name is live.
  absl::Status Register(std::shared_ptr<OutputStream> stream);
  // For one that was not let in after all.
  void Unregister(const OutputStream& stream);

  // Null when there is none.
  std::shared_ptr<OutputStream> Find(const std::string& request_id) const;
  std::vector<std::shared_ptr<OutputStream>> Live() const;
  int num_live() const;

  // Ends the stream with `status`, and then the request at all ranks: a step
  // may end it as soon as it is told, and no summary may come before the
  // status. Its reader is the caller's to wake. REQUIRES: the inbox has the
  // request.
  void EndEarly(OutputStream& stream, v1::AbortCause cause,
                const absl::Status& status);

  // `ended` is told each request that its last choice has ended, on the thread
  // "streams", before its reader is woken. Null when nobody is told any more;
  // then, when this returns, it does not run.
  void OnEnd(std::function<void(const OutputStream&)> ended);

  // Calls `done` when no request is live: at once if so, else on the thread
  // that ends the last one. Once.
  void WhenEmpty(std::function<void()> done);

  // The group failed: every stream ends with `status`, also those whose end was
  // noted and not told yet. Returns them: their lines in the log, which may
  // wait for its reader, are the caller's to write.
  std::vector<std::shared_ptr<OutputStream>> FailAll(
      const absl::Status& status);

  void OnFirstScheduled(SequenceId id, int cached_tokens) override;
  void OnPromptLogprobs(SequenceId id,
                        std::vector<v1::PositionLogprobs> logprobs) override;
  void OnToken(SequenceId id, uint32_t token,
               std::vector<v1::PositionLogprobs> logprobs) override;
  void OnEmbedding(SequenceId id, std::vector<float> embedding) override;
  void OnFinish(SequenceId id, v1::FinishReason reason,
                std::optional<uint32_t> stop_token_id) override;

  // After each step, of a failed one too.
  void EndStep() { queue_.Flush(); }

 private:
  // Those of the thread "streams".
  void Tell(absl::Span<StepOutput> outputs);
  void TellOne(StepOutput& output, const std::shared_ptr<OutputStream>& stream);
  void TellFinish(const StepOutput& output, OutputStream& stream);

  std::shared_ptr<OutputStream> FindNumber(uint64_t number) const;
  void EndIfTooSlow(OutputStream& stream, const absl::Status& buffered);
  void Remove(const OutputStream& stream);
  void RunIfEmpty();

  RequestInbox* const inbox_;

  // Held while it runs. Before mutex_.
  absl::Mutex ended_mutex_ ABSL_ACQUIRED_BEFORE(mutex_);
  std::function<void(const OutputStream&)> ended_ ABSL_GUARDED_BY(ended_mutex_);

  std::vector<std::shared_ptr<OutputStream>> touched_;  // thread "streams"

  mutable absl::Mutex mutex_;
  std::map<uint64_t, std::shared_ptr<OutputStream>> streams_
      ABSL_GUARDED_BY(mutex_);  // by number
  std::map<std::string, uint64_t> numbers_ ABSL_GUARDED_BY(mutex_);  // by id
  std::function<void()> when_empty_ ABSL_GUARDED_BY(mutex_);

  OutputQueue queue_;  // the last: its thread uses all above
};

}  // namespace lockstep
