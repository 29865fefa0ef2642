#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/synchronization/mutex.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "frontend/generation/generation.h"
#include "frontend/generation/pipeline.h"
#include "frontend/generation/spec.h"
#include "proto/embedding.pb.h"
#include "proto/sampling.pb.h"

namespace lockstep {

struct EmbedResult {
  std::vector<v1::Embedding> embeddings;  // one an input, in their order
  v1::Usage usage;                        // of all inputs
  int failovers = 0;
};

// One request for embeddings: a Generation for each of its inputs, a few at a
// time, so that a long list neither fills the queues of the groups nor keeps
// others waiting. All of them or none.
//
//   auto batch = std::make_shared<EmbedBatch>(&pipeline, bytes, parse, caller,
//                                             done);
//   batch->Start();      // done(result), at some time, once
//   batch->Cancel(why);  // the client hung up
//
// Start is called once, and may call `done`; Cancel any time, on any thread.
// The first error is the result, once all that runs has ended. Keeps itself
// alive until then.
class EmbedBatch : public std::enable_shared_from_this<EmbedBatch> {
 public:
  // Called on an encoding thread where the result is large.
  using Done = std::function<void(absl::StatusOr<EmbedResult>)>;

  // `pipeline` must outlive it. `parse` is called once at most, on an encoding
  // thread. The caller's grant is released before `done` is called.
  EmbedBatch(Pipeline* pipeline, size_t request_bytes, Parser<EmbedSpec> parse,
             Caller caller, Done done);
  ~EmbedBatch();

  void Start();
  void Cancel(const absl::Status& why);

 private:
  class Part;  // an input

  absl::StatusOr<GenerateSpec> ParseFirst();
  void StartParts();
  // Null where none may start now.
  Part* NextPart();
  GenerateSpec SpecOf(size_t input);
  void OnEmbedding(size_t input, v1::Embedding embedding);
  // A part's terminal event, with a summary where the status is OK; the part
  // may be gone afterwards.
  void OnPartEnd(size_t input, const absl::Status& status,
                 const SummaryEvent& summary);
  std::unique_ptr<Part> Take(size_t input);
  void AddLocked(const SummaryEvent& summary)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void End();

  Pipeline* const pipeline_;
  const size_t request_bytes_;
  const Caller caller_;
  const Done done_;
  Parser<EmbedSpec> parse_;  // until it was called
  EmbedSpec spec_;           // from there on; each input until its part starts
  std::vector<size_t> costs_;  // at most so many tokens, by input

  // Not held while a part is started or destroyed.
  absl::Mutex mutex_;
  // By input; the first stays to the end, as it has the request's bytes.
  std::vector<std::unique_ptr<Part>> parts_ ABSL_GUARDED_BY(mutex_);
  size_t num_started_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t num_running_ ABSL_GUARDED_BY(mutex_) = 0;
  size_t running_cost_ ABSL_GUARDED_BY(mutex_) = 0;
  EmbedResult result_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<EmbedBatch> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
