#include "tests/simulation/routing/simulated_group.h"

#include <algorithm>
#include <utility>

#include "frontend/routing/policy/page_chain.h"

namespace lockstep::testing {

SimulatedGroup::SimulatedGroup(const GroupModel& model)
    : model_(model), cache_(model.kv_capacity_tokens / kChainPageTokens) {}

SimulatedGroup::Outcome SimulatedGroup::Step(double now_s) {
  ++step_;
  Outcome outcome;
  const int64_t decoded = decoding_;
  const int64_t prefilled = Prefill(model_.max_step_tokens - decoded);
  outcome.took_s = model_.step_s +
                   model_.prefill_token_s * static_cast<double>(prefilled) +
                   model_.decode_token_s * static_cast<double>(decoded);
  sequence_seconds_ +=
      outcome.took_s *
      static_cast<double>(load().sequences +
                          static_cast<int64_t>(prefilled_.size()));
  for (Sequence& sequence : prefilled_) {
    outcome.first_tokens.push_back(sequence.request->id);
    sequence.first_token_s = now_s + outcome.took_s;
    cache_.Insert(sequence.request->chain);
    Decode(std::move(sequence));
  }
  prefilled_.clear();
  while (!ends_.empty() && ends_.top().first <= step_) {
    outcome.ended.push_back(End(ends_.top().second));
    ends_.pop();
  }
  return outcome;
}

void SimulatedGroup::Decode(Sequence sequence) {
  uint64_t slot = slots_.size();
  if (free_slots_.empty()) {
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  ends_.push({step_ + sequence.request->output_tokens - 1, slot});
  slots_[slot] = std::move(sequence);
  ++decoding_;
}

SimulatedGroup::Ended SimulatedGroup::End(uint64_t slot) {
  const Sequence ended = std::move(slots_[slot]);
  free_slots_.push_back(slot);
  --decoding_;
  const SimulatedRequest& request = *ended.request;
  held_tokens_ -= request.prompt_tokens + request.output_tokens;
  return {request.id, request.prompt_tokens, ended.cached_tokens,
          ended.first_token_s - request.arrived_s};
}

int64_t SimulatedGroup::Prefill(int64_t budget) {
  int64_t computed = 0;
  while (!waiting_.empty() && computed < budget) {
    Sequence& first = waiting_.front();
    if (!first.is_started && !StartFirst()) break;
    const int64_t chunk = std::min(first.rest, budget - computed);
    first.rest -= chunk;
    computed += chunk;
    waiting_tokens_ -= chunk;
    if (first.rest > 0) break;
    prefilled_.push_back(std::move(first));
    waiting_.pop_front();
  }
  return computed;
}

// False while there is no room for it.
bool SimulatedGroup::StartFirst() {
  Sequence& first = waiting_.front();
  const SimulatedRequest& request = *first.request;
  const int64_t needed = request.prompt_tokens + request.output_tokens;
  if (held_tokens_ > 0 && held_tokens_ + needed > model_.kv_capacity_tokens) {
    return false;
  }
  held_tokens_ += needed;
  first.is_started = true;
  first.cached_tokens =
      std::min<int64_t>(cache_.NumMatching(request.chain) * kChainPageTokens,
                        request.prompt_tokens - 1);
  first.rest = request.prompt_tokens - first.cached_tokens;
  waiting_tokens_ -= first.cached_tokens;
  return true;
}

GroupLoad SimulatedGroup::load() const {
  return {.waiting_tokens = waiting_tokens_,
          .sequences = static_cast<int64_t>(waiting_.size()) + decoding_,
          .kv_usage = static_cast<double>(held_tokens_) /
                      static_cast<double>(model_.kv_capacity_tokens)};
}

}  // namespace lockstep::testing
