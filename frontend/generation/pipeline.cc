#include "frontend/generation/pipeline.h"

#include <utility>

#include "common/status_macros.h"

namespace lockstep {

Pipeline::Pipeline(const PipelineOptions& options, const Tokenizer* tokenizer,
                   WorkerClient* worker)
    : tokenizer_(tokenizer),
      worker_(worker),
      admission_(options.max_inflight_requests),
      encode_pool_("encode", options.encode_threads,
                   options.max_inflight_requests) {}

void Pipeline::Tokenize(
    PromptSpec prompt,
    std::function<void(absl::StatusOr<EncodedPrompt>)> done) {
  const absl::Status status =
      RunAdmitted([this, prompt = std::move(prompt), done] {
        done(EncodePrompt(prompt, *tokenizer_));
      });
  if (!status.ok()) done(status);
}

void Pipeline::Detokenize(
    std::vector<uint32_t> ids, bool skip_special_tokens,
    std::function<void(absl::StatusOr<std::string>)> done) {
  const absl::Status status =
      RunAdmitted([this, ids = std::move(ids), skip_special_tokens, done] {
        done(tokenizer_->Decode(ids, skip_special_tokens));
      });
  if (!status.ok()) done(status);
}

absl::Status Pipeline::RunAdmitted(std::function<void()> task) {
  LOCKSTEP_ASSIGN_OR_RETURN(Admission::Ticket ticket, admission_.Admit());
  // Shared, as a std::function must be copyable.
  auto held = std::make_shared<Admission::Ticket>(std::move(ticket));
  return encode_pool_.Run([held, task = std::move(task)] { task(); });
}

}  // namespace lockstep
