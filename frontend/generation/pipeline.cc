#include "frontend/generation/pipeline.h"

#include <memory>
#include <utility>

namespace lockstep {

Pipeline::Pipeline(const PipelineOptions& options, const Tokenizer* tokenizer,
                   GroupSet* groups)
    : tokenizer_(tokenizer),
      chat_format_(MakeChatFormat(options.output_format, *tokenizer)),
      groups_(groups),
      inflight_({.requests = options.max_inflight_requests,
                 .prompt_tokens = options.max_inflight_prompt_tokens}),
      encode_pool_(
          "encode", options.encode_threads,
          {.tasks = static_cast<size_t>(options.max_inflight_requests)}) {}

void Pipeline::Tokenize(
    size_t request_bytes, Parser<PromptSpec> parse,
    std::function<void(absl::StatusOr<EncodedPrompt>)> done) {
  RunAdmitted(
      request_bytes,
      [this, parse = std::move(parse), done] {
        const auto prompt = parse();
        if (!prompt.ok()) return done(prompt.status());
        done(EncodePrompt(*prompt, chat_format_, *tokenizer_));
      },
      done);
}

void Pipeline::Detokenize(
    size_t request_bytes, Parser<DetokenizeSpec> parse,
    std::function<void(absl::StatusOr<std::string>)> done) {
  RunAdmitted(
      request_bytes,
      [this, parse = std::move(parse), done] {
        const auto spec = parse();
        if (!spec.ok()) return done(spec.status());
        done(tokenizer_->Decode(spec->ids, spec->skip_special_tokens));
      },
      done);
}

void Pipeline::RunAdmitted(
    size_t bytes, std::function<void()> task,
    std::function<void(const absl::Status& why)> refuse) {
  auto ticket = inflight_.Admit(bytes);
  if (!ticket.ok()) return refuse(ticket.status());
  // Shared, as a std::function must be copyable.
  auto held = std::make_shared<InflightRequests::Ticket>(*std::move(ticket));
  const auto run = [this, bytes, held, task = std::move(task), refuse] {
    const absl::Status status =
        encode_pool_.Run(bytes, [held, task] { task(); });
    if (!status.ok()) refuse(status);
  };
  if (groups_->HasGroup()) return run();
  groups_->AwaitModel(run);
}

}  // namespace lockstep
