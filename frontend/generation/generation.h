#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "frontend/generation/admission.h"
#include "frontend/generation/answer.h"
#include "frontend/generation/pipeline.h"
#include "frontend/generation/response_sink.h"
#include "frontend/generation/spec.h"
#include "frontend/routing/worker_call.h"

namespace lockstep {

// One Generate request on its way: admit → render and encode → send to the
// worker → decode what comes back → sink.
//
//   Generation generation(&pipeline, std::move(spec), &sink);
//   generation.Start();      // the sink's terminal event is the end of it
//   generation.Cancel();     // the client hung up
//
// Start is called once; the terminal event can come within it. Cancel can be
// called at any time, from any thread, and leads to OnError. The object must
// live until the terminal event, and may be destroyed from within it.
class Generation : private WorkerCall::Listener {
 public:
  // Both must outlive this.
  Generation(Pipeline* pipeline, GenerateSpec spec, ResponseSink* sink);

  void Start();
  void Cancel();

 private:
  using Clock = std::chrono::steady_clock;

  void EncodeAndSend();  // on an encoding thread
  void Send(const std::vector<uint32_t>& prompt_token_ids);
  void OnMessage(const v1::WorkerGenerateResponse& message) override;
  void OnEnd(absl::Status status) override;
  bool is_cancelled() const;
  // The terminal event. *this may be gone afterwards.
  void End(const absl::Status& status);

  Pipeline* const pipeline_;
  const GenerateSpec spec_;
  ResponseSink* const sink_;
  Admission::Ticket ticket_;  // until the sink lets go of the generation
  Answer answer_;

  // Of one stage at a time, each started by the one before it.
  Clock::time_point started_;
  std::optional<Clock::time_point> first_delta_;
  absl::Status failure_;  // why the call was cancelled, if not by the client
  size_t prompt_tokens_ = 0;

  mutable absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<WorkerCall> call_ ABSL_GUARDED_BY(mutex_);  // set once
};

}  // namespace lockstep
