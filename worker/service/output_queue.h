#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/synchronization/mutex.h>
#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "proto/sampling.pb.h"
#include "worker/core/output_sink.h"

namespace lockstep {

// What a step says about one sequence; see OutputSink.
struct StepOutput {
  enum class Kind {
    kFirstScheduled,
    kPromptLogprobs,
    kToken,
    kEmbedding,
    kFinish,
  };

  Kind kind = Kind::kToken;
  SequenceId id = {};
  int cached_tokens = 0;
  uint32_t token = 0;
  std::vector<v1::PositionLogprobs> logprobs = {};
  std::vector<float> embedding = {};
  v1::FinishReason reason = v1::FINISH_REASON_UNSPECIFIED;
  std::optional<uint32_t> stop_token_id = std::nullopt;
};

// Brings the outputs of steps to a thread of its own, "streams": readers
// serialize messages and hand them to gRPC, which no step should wait for.
//
//   OutputQueue queue([&](absl::Span<StepOutput> outputs) { … });
//   queue.Add(std::move(output));  // no lock
//   queue.Flush();                 // at the end of a step: one lock, one wake
//
// Bounded: while kMaxWaiting outputs wait, Flush blocks until the thread has
// taken them. `take` gets all that wait at once, in order; it must not wait for
// a step. The destructor has it take what is left. Allocates nothing for
// steps of at most 4096 outputs, however far the thread lags behind.
class OutputQueue {
 public:
  static constexpr size_t kMaxWaiting = 1 << 16;

  explicit OutputQueue(std::function<void(absl::Span<StepOutput>)> take);
  ~OutputQueue();
  OutputQueue(const OutputQueue&) = delete;
  OutputQueue& operator=(const OutputQueue&) = delete;

  // The step thread's, both.
  void Add(StepOutput output) { filling_.push_back(std::move(output)); }
  void Flush();

 private:
  void Run();

  const std::function<void(absl::Span<StepOutput>)> take_;
  std::vector<StepOutput> filling_;  // step thread

  absl::Mutex mutex_;
  std::vector<StepOutput> waiting_ ABSL_GUARDED_BY(mutex_);
  bool destroyed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace lockstep
