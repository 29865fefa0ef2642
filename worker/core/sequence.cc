#include "worker/core/sequence.h"

#include <utility>

namespace lockstep {

Sequence::Sequence(SequenceId id, std::shared_ptr<const v1::AddRequest> request)
    : id_(id), request_(std::move(request)) {
  tokens_.assign(request_->prompt_token_ids().begin(),
                 request_->prompt_token_ids().end());
  tokens_.insert(tokens_.end(), request_->resume_token_ids().begin(),
                 request_->resume_token_ids().end());
}

void Sequence::Reserve(int num_tokens, int num_pages) {
  tokens_.reserve(num_tokens);
  pages_.reserve(num_pages);
}

}  // namespace lockstep
