#include "worker/service/warm_up.h"

#include <utility>

#include "common/status_macros.h"

namespace lockstep {
namespace {

// No client can name it: a client's id has no parentheses.
constexpr char kRequestId[] = "(warm-up)";

// Greedy, neutral, outside the prefix cache; id 0 is in every vocabulary.
v1::AddRequest WarmUpRequest(bool generates) {
  v1::AddRequest request;
  request.add_prompt_token_ids(0);
  request.set_bypass_prefix_cache(true);
  v1::ResolvedSampling& sampling = *request.mutable_sampling();
  sampling.set_top_p(1);
  sampling.set_repetition_penalty(1);
  sampling.set_max_tokens(2);
  sampling.set_n(1);
  if (generates) return request;
  request.mutable_embedding()->set_pooling(v1::LAST_TOKEN);
  request.mutable_embedding()->set_dimensions(1);
  return request;
}

}  // namespace

WarmUp::~WarmUp() {
  if (stream_ != nullptr) stream_->set_reader(nullptr);
}

absl::Status WarmUp::Start(Admission* admission, bool generates,
                           std::function<void(const absl::Status&)> done) {
  LOCKSTEP_ASSIGN_OR_RETURN(
      stream_, admission->SubmitAnyway(kRequestId, WarmUpRequest(generates)));
  const auto read = [stream = stream_.get(), done = std::move(done),
                     has_ended = false]() mutable {
    v1::WorkerGenerateResponse message;
    OutputStream::Next next;
    while ((next = stream->Take(&message)) == OutputStream::Next::kMessage) {
    }
    if (next != OutputStream::Next::kEnd || has_ended) return;
    has_ended = true;
    done(stream->status());
  };
  stream_->set_reader(read);
  stream_->Wake();
  return absl::OkStatus();
}

}  // namespace lockstep
