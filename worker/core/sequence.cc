#include "worker/core/sequence.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace lockstep {

absl::Span<const uint32_t> ResumeTokens(const v1::AddRequest& request,
                                        uint32_t choice) {
  const absl::Span<const uint32_t> all = request.resume_token_ids();
  const absl::Span<const uint32_t> counts = request.resume_token_counts();
  if (counts.empty()) return choice == 0 ? all : all.first(0);
  const size_t begin =
      std::accumulate(counts.begin(), counts.begin() + choice, size_t{0});
  return all.subspan(begin, counts[choice]);
}

bool HasEnded(const v1::AddRequest& request, uint32_t choice) {
  return std::binary_search(request.ended_choices().begin(),
                            request.ended_choices().end(), choice);
}

Sequence::Sequence(SequenceId id, std::shared_ptr<const v1::AddRequest> request)
    : id_(id), request_(std::move(request)) {
  tokens_.assign(request_->prompt_token_ids().begin(),
                 request_->prompt_token_ids().end());
  const absl::Span<const uint32_t> output = ResumeTokens(*request_, id.choice);
  tokens_.insert(tokens_.end(), output.begin(), output.end());
}

void Sequence::Reserve(int num_tokens, int num_pages) {
  tokens_.reserve(num_tokens);
  pages_.reserve(num_pages);
}

}  // namespace lockstep
