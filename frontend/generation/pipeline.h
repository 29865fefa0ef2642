#pragma once

#include <absl/status/statusor.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "common/text_pool.h"
#include "frontend/generation/chat_format.h"
#include "frontend/generation/generation_meter.h"
#include "frontend/generation/inflight_requests.h"
#include "frontend/generation/prompt_encoder.h"
#include "frontend/generation/spec.h"
#include "frontend/routing/group_set.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {

struct PipelineOptions {
  int max_inflight_requests = 1024;
  int encode_threads = 2;
  int64_t max_inflight_prompt_tokens = int64_t{4} << 20;
  OutputFormat output_format = {};
};

// How a request in the words of a protocol becomes ours; takes as long as the
// request is long.
template <typename Spec>
using Parser = std::function<absl::StatusOr<Spec>()>;

// What all requests share on their way: the limits, the threads that parse and
// encode, the tokenizer, the worker groups. A Generation walks through it;
// requests that need the tokenizer alone are answered here.
//
//   Pipeline pipeline(options, &tokenizer, &groups);
//   pipeline.Tokenize(request.Length(), [=] { return Parse(request); },
//                     [=](absl::StatusOr<EncodedPrompt> result) { … });
//
// Any thread. Everything in flight must have ended before it is destroyed.
class Pipeline {
 public:
  // Both must outlive this.
  Pipeline(const PipelineOptions& options, const Tokenizer* tokenizer,
           GroupSet* groups);

  // `parse`, then `done` are called once, on an encoding thread, when a group
  // is ready or has not been for a while; of a refusal `done` alone, on this
  // thread or "timers". RESOURCE_EXHAUSTED where too much is in flight.
  void Tokenize(size_t request_bytes, Parser<PromptSpec> parse,
                std::function<void(absl::StatusOr<EncodedPrompt>)> done);
  void Detokenize(size_t request_bytes, Parser<DetokenizeSpec> parse,
                  std::function<void(absl::StatusOr<std::string>)> done);

  InflightRequests& inflight() { return inflight_; }
  TextPool& encode_pool() { return encode_pool_; }
  const Tokenizer& tokenizer() const { return *tokenizer_; }
  const ChatFormat& chat_format() const { return chat_format_; }
  GroupSet& groups() { return *groups_; }
  GenerationMeter& meter() { return meter_; }

 private:
  void RunAdmitted(size_t bytes, std::function<void()> task,
                   std::function<void(const absl::Status& why)> refuse);

  const Tokenizer* const tokenizer_;
  const ChatFormat chat_format_;
  GroupSet* const groups_;
  GenerationMeter meter_;
  InflightRequests inflight_;
  TextPool encode_pool_;
};

}  // namespace lockstep
