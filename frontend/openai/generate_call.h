#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "frontend/access/key_account.h"
#include "frontend/generation/generation.h"
#include "frontend/generation/pipeline.h"
#include "frontend/generation/response_sink.h"
#include "frontend/http/message.h"
#include "frontend/http/response_writer.h"
#include "frontend/openai/answer_writer.h"
#include "frontend/openai/request.h"

namespace lockstep::openai {

// One completion request: a Generation for each of its prompts, and their
// events, which come on several threads, in one answer.
//
//   GenerateCall::Start(pipeline, request, parse, writer);
//
// The first Generation parses the request, on an encoding thread, and so finds
// out how many more there are. The first error is the answer, and ends the
// others. A client that hangs up ends all of them at once, and so does the
// clock after --request_timeout, whether or not the client reads. Keeps itself
// alive until the last has ended.
class GenerateCall : public std::enable_shared_from_this<GenerateCall> {
 public:
  using Parse = std::function<absl::StatusOr<ParsedRequest>(
      const http::Request& request)>;

  // `pipeline` must outlive the call. `grant` is released before the end is
  // told; null: none is needed.
  static void Start(Pipeline* pipeline, http::Request request,
                    std::shared_ptr<AccessGrant> grant, Parse parse,
                    std::shared_ptr<http::ResponseWriter> writer);

 private:
  class Part;  // a prompt

  GenerateCall(Pipeline* pipeline, http::Request request,
               std::shared_ptr<AccessGrant> grant, Parse parse,
               std::shared_ptr<http::ResponseWriter> writer);

  absl::StatusOr<GenerateSpec> ParseFirst();
  void EndAfterTimeout();
  void StartPart(size_t request_bytes, Parser<GenerateSpec> parse);
  void Cancel(const absl::Status& why);
  // A refusal that no other try of a batch so large could escape names the
  // limit.
  absl::Status ExplainLocked(const absl::Status& status) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Says so, unless something was said before.
  void FailLocked(const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // A part's terminal event; the part may be gone afterwards.
  void OnPartEnd(const absl::Status& status, const SummaryEvent* summary);
  void WithAnswer(const std::function<void(AnswerWriter*)>& tell);
  // Where it takes long, on an encoding thread.
  static void Complete(Pipeline* pipeline, std::unique_ptr<AnswerWriter> answer,
                       std::vector<std::unique_ptr<Part>> parts);
  void AwaitRoom(std::function<void()> resume);

  Pipeline* const pipeline_;
  http::Request request_;  // until it is parsed
  const std::shared_ptr<AccessGrant> grant_;
  const Parse parse_;
  const std::shared_ptr<http::ResponseWriter> writer_;

  // Held while the writer is told, which does not wait; not while a part is
  // started, nor while the answer is completed.
  absl::Mutex mutex_;
  std::unique_ptr<AnswerWriter> answer_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Part>> parts_ ABSL_GUARDED_BY(mutex_);
  size_t expected_parts_ ABSL_GUARDED_BY(mutex_) = 1;
  size_t ended_parts_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t timer_ ABSL_GUARDED_BY(mutex_) = 0;
  bool is_over_ ABSL_GUARDED_BY(mutex_) = false;  // and well: nothing fails it
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::shared_ptr<GenerateCall> self_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::openai
