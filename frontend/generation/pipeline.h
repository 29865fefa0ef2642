#pragma once

#include <absl/status/statusor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/text_pool.h"
#include "frontend/generation/admission.h"
#include "frontend/generation/prompt_encoder.h"
#include "frontend/generation/spec.h"
#include "frontend/routing/worker_client.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {

struct PipelineOptions {
  int max_inflight_requests = 1024;
  int encode_threads = 2;
};

// What all requests share on their way: admission, the threads that encode, the
// tokenizer, the worker. A Generation walks through it; requests that need the
// tokenizer alone are answered here.
//
//   Pipeline pipeline(options, &tokenizer, &worker);
//   pipeline.Tokenize(prompt, [](absl::StatusOr<EncodedPrompt> result) { … });
//
// Any thread. Everything in flight must have ended before it is destroyed.
class Pipeline {
 public:
  // Both must outlive this.
  Pipeline(const PipelineOptions& options, const Tokenizer* tokenizer,
           WorkerClient* worker);

  // `done` is called once, on this thread for a refusal, else on an encoding
  // thread. RESOURCE_EXHAUSTED where too much is in flight.
  void Tokenize(PromptSpec prompt,
                std::function<void(absl::StatusOr<EncodedPrompt>)> done);
  void Detokenize(std::vector<uint32_t> ids, bool skip_special_tokens,
                  std::function<void(absl::StatusOr<std::string>)> done);

  Admission& admission() { return admission_; }
  TextPool& encode_pool() { return encode_pool_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  WorkerClient& worker() { return *worker_; }

 private:
  absl::Status RunAdmitted(std::function<void()> task);

  const Tokenizer* const tokenizer_;
  WorkerClient* const worker_;
  Admission admission_;
  TextPool encode_pool_;
};

}  // namespace lockstep
