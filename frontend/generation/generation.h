#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frontend/access/key_account.h"
#include "frontend/generation/answer.h"
#include "frontend/generation/inflight_requests.h"
#include "frontend/generation/pipeline.h"
#include "frontend/generation/prompt_encoder.h"
#include "frontend/generation/response_sink.h"
#include "frontend/generation/spec.h"
#include "frontend/ledger/access_record.h"
#include "frontend/routing/routed_call.h"
#include "frontend/routing/worker_call.h"
#include "proto/grammar.pb.h"

namespace lockstep {

// Who asks, as far as it is known before the request is parsed.
struct Caller {
  std::shared_ptr<AccessGrant> grant = nullptr;  // null: needs no key
  // The request's entry in the book, which is told of the end. Null: none.
  std::shared_ptr<AccessRecord> record = nullptr;
};

// One Generate request on its way: admit → wait for a group, where none is
// ready → parse, render and encode → send to a worker group → decode what comes
// back → sink.
//
//   Generation generation(&pipeline, request.Length(), parse, &sink);
//   generation.Start();      // the sink's terminal event is the end of it
//   generation.Cancel(why);  // the client hung up
//
// Start is called once; the terminal event can come within it. Cancel can be
// called at any time, from any thread, and leads to OnError with the first
// reason given. The object must live until the terminal event, and may be
// destroyed from within it.
class Generation : private WorkerCall::Listener {
 public:
  // `pipeline` and `sink` must outlive this. `parse` is called at most once, on
  // an encoding thread, before the terminal event. The caller's grant is let go
  // of before that event.
  Generation(Pipeline* pipeline, size_t request_bytes,
             Parser<GenerateSpec> parse, ResponseSink* sink,
             Caller caller = {});

  void Start();
  void Cancel(const absl::Status& why);

 private:
  using Clock = std::chrono::steady_clock;

  void AwaitModel();
  void Enqueue();
  void ParseAndEncode();  // on an encoding thread
  void SpendTokens(int64_t tokens);
  absl::Status KeepPrompt(const EncodedPrompt& prompt, bool is_cut);
  void Send(const std::vector<uint32_t>& prompt_token_ids);
  // As the client named it, or we for it; "-" while it is not known.
  std::string request_id() const;
  CallMetadata MetadataOfCall() const;
  void MeterTokens(const v1::WorkerGenerateResponse& message);
  void OnMessage(const v1::WorkerGenerateResponse& message) override;
  void OnEnd(absl::Status status) override;
  absl::Status why_cancelled() const;  // OK while it is not
  AnswerRecord RecordOf(const absl::Status& status) const;
  // The terminal event. *this may be gone afterwards.
  void End(const absl::Status& status);

  Pipeline* const pipeline_;
  const size_t request_bytes_;
  Parser<GenerateSpec> parse_;
  ResponseSink* const sink_;
  Caller caller_;

  GenerateSpec spec_;                   // from ParseAndEncode on
  std::optional<v1::Grammar> grammar_;  // from there to Send
  Answer answer_;

  // Of one stage at a time, each started by the one before it.
  Clock::time_point started_;
  std::optional<Clock::time_point> first_delta_;
  Clock::time_point last_delta_;
  absl::Status failure_;  // why the call was cancelled, if not by the client
  size_t prompt_tokens_ = 0;
  int failovers_ = 0;

  mutable absl::Mutex mutex_;
  absl::Status why_cancelled_ ABSL_GUARDED_BY(mutex_);
  uint64_t wait_ ABSL_GUARDED_BY(mutex_) = 0;  // for a first group
  std::shared_ptr<RoutedCall> call_ ABSL_GUARDED_BY(mutex_);  // set once

  // Until the sink lets go of the generation. The first to be destroyed: Cancel
  // can be called while it is held.
  InflightRequests::Ticket ticket_;
};

}  // namespace lockstep
