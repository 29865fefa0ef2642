#include "tests/testing/fake_engine.h"

#include <absl/strings/str_cat.h>
#include <absl/types/span.h>

#include <algorithm>
#include <utility>

#include "common/status_macros.h"

namespace lockstep {
namespace {

// The finalizer of SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom
// Number Generators, 2014).
uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

uint64_t HashContext(absl::Span<const uint32_t> context, uint64_t seed) {
  uint64_t hash = Mix(seed + context.size());
  for (const uint32_t token : context) hash = Mix(hash + token + 1);
  return hash;
}

}  // namespace

uint32_t FakeToken(absl::Span<const uint32_t> context,
                   const v1::ResolvedSampling& sampling, uint32_t choice,
                   uint32_t vocabulary_size) {
  const uint64_t hash = HashContext(context, sampling.seed() ^ Mix(choice));
  return static_cast<uint32_t>(hash % vocabulary_size);
}

v1::PositionLogprobs FakeLogprobs(absl::Span<const uint32_t> context,
                                  uint32_t token, int k) {
  const uint64_t hash = HashContext(context, token);
  v1::PositionLogprobs logprobs;
  logprobs.mutable_token()->set_token_id(token);
  logprobs.mutable_token()->set_rank(1);
  logprobs.mutable_token()->set_logprob(-static_cast<float>(hash % 1024) / 64);
  for (int i = 0; i < k; ++i) {
    v1::TokenLogprob* top = logprobs.add_top();
    top->set_token_id(token + i);
    top->set_rank(i + 1);
    top->set_logprob(logprobs.token().logprob() - i);
  }
  return logprobs;
}

std::vector<float> FakeEmbedding(absl::Span<const uint32_t> token_ids,
                                 const v1::ResolvedEmbedding& embedding) {
  std::vector<float> values;
  for (uint32_t i = 0; i < embedding.dimensions(); ++i) {
    const uint64_t hash = HashContext(token_ids, embedding.pooling() ^ Mix(i));
    values.push_back(static_cast<float>(hash % 2048) / 1024 - 1);
  }
  return values;
}

FakeEngine::FakeEngine(const Options& options)
    : options_(options),
      slots_(static_cast<size_t>(options.num_pages) * options.page_size, -1) {}

void FakeEngine::set_before_step(
    std::function<absl::Status(const StepPlan&)> hook) {
  before_step_ = std::move(hook);
}

absl::Status FakeEngine::Execute(const StepPlan& plan, StepResult* result) {
  if (before_step_) LOCKSTEP_RETURN_IF_ERROR(before_step_(plan));
  for (const SequenceSpan& span : plan.spans) {
    for (int i = span.begin; i < span.begin + span.count; ++i) {
      slots_[Slot(*span.sequence, i)] = span.sequence->tokens()[i];
    }
  }
  result->spans.resize(plan.spans.size());
  for (size_t i = 0; i < plan.spans.size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(FillSpan(plan.spans[i], &result->spans[i]));
  }
  return absl::OkStatus();
}

absl::Status FakeEngine::FillSpan(const SequenceSpan& span,
                                  SpanResult* result) {
  result->logprobs.clear();
  result->prompt_logprobs.clear();
  const Sequence& sequence = *span.sequence;
  const v1::ResolvedSampling& sampling = sequence.sampling();
  if (!span.samples && !span.embeds &&
      span.prompt_logits_begin == span.prompt_logits_end) {
    return absl::OkStatus();
  }
  LOCKSTEP_RETURN_IF_ERROR(ReadContext(sequence, span.begin + span.count));
  const auto context = absl::MakeConstSpan(context_);
  if (span.embeds) {
    result->embedding = FakeEmbedding(context, sequence.request().embedding());
  }
  for (int i = span.prompt_logits_begin; i < span.prompt_logits_end; ++i) {
    result->prompt_logprobs.push_back(
        FakeLogprobs(context.first(i + 1), sequence.tokens()[i + 1],
                     sampling.prompt_logprobs_plus_one() - 1));
  }
  if (!span.samples) return absl::OkStatus();
  result->token = FakeToken(context, sampling, sequence.id().choice,
                            options_.vocabulary_size);
  if (sampling.logprobs_plus_one() > 0) {
    result->logprobs.push_back(
        FakeLogprobs(context, result->token, sampling.logprobs_plus_one() - 1));
  }
  return absl::OkStatus();
}

absl::Status FakeEngine::ReadContext(const Sequence& sequence, int end) {
  context_.clear();
  for (int position = 0; position < end; ++position) {
    const int64_t token = slots_[Slot(sequence, position)];
    if (token < 0) {
      return absl::InternalError(
          absl::StrCat("request ", sequence.id().request, " reads position ",
                       position, " from a slot that was never written"));
    }
    context_.push_back(static_cast<uint32_t>(token));
  }
  return absl::OkStatus();
}

size_t FakeEngine::Slot(const Sequence& sequence, int position) const {
  const int32_t page = sequence.pages().at(position / options_.page_size);
  return static_cast<size_t>(page) * options_.page_size +
         position % options_.page_size;
}

FakeOutput ContinueAlone(const v1::AddRequest& request, uint32_t choice,
                         int max_context, uint32_t vocabulary_size) {
  std::vector<uint32_t> context(request.prompt_token_ids().begin(),
                                request.prompt_token_ids().end());
  const auto resumed = ResumeTokens(request, choice);
  context.insert(context.end(), resumed.begin(), resumed.end());
  const auto& stops = request.sampling().stop_token_ids();
  const size_t longest = std::min<size_t>(
      max_context, request.prompt_token_ids_size() +
                       size_t{request.sampling().max_tokens()});
  FakeOutput output;
  while (context.size() < longest) {
    const uint32_t token =
        FakeToken(context, request.sampling(), choice, vocabulary_size);
    if (std::find(stops.begin(), stops.end(), token) != stops.end()) {
      output.reason = v1::STOP;
      return output;
    }
    context.push_back(token);
    output.tokens.push_back(token);
  }
  output.reason = v1::LENGTH;
  return output;
}

}  // namespace lockstep
