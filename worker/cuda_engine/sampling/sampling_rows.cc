#include "worker/cuda_engine/sampling/sampling_rows.h"

#include <glog/logging.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "proto/group.pb.h"
#include "worker/core/host_part.h"
#include "worker/sampling/sampling_noise.h"

namespace lockstep {
namespace {

// What LogitAdjustments knows of a sequence, of one whose last token may not be
// known yet.

bool MasksStopIds(const v1::ResolvedSampling& sampling,
                  uint32_t output_position) {
  return output_position < sampling.min_tokens();
}

size_t MostAdjustments(const Sequence& sequence, uint32_t output_position) {
  const v1::ResolvedSampling& sampling = sequence.sampling();
  size_t ids = sampling.bias_token_ids_size();
  if (HasPenalties(sampling)) ids += sequence.num_tokens();
  if (MasksStopIds(sampling, output_position)) {
    ids += sampling.stop_token_ids_size();
  }
  return ids;
}

}  // namespace

SamplingRows::SamplingRows(const Limits& limits)
    : limits_(limits), place_of_(limits.vocab_size, -1) {
  const size_t words = (limits.vocab_size + 31) / 32;
  adjusted_.reserve(limits.choices);
  adjustments_.reserve(limits.adjustments);
  masks_.reserve(limits.choices * words);
  sampled_.reserve(limits.choices);
  scored_.reserve(limits.rows);
}

void SamplingRows::Clear() {
  adjusted_.clear();
  adjustments_.clear();
  masks_.clear();
  sampled_.clear();
  scored_.clear();
}

bool SamplingRows::HasRoomFor(const Sequence& sequence,
                              uint32_t output_position) const {
  if (KeepsIdsOut(sequence.sampling())) return false;
  return adjustments_.size() +
             std::min(MostAdjustments(sequence, output_position),
                      static_cast<size_t>(limits_.vocab_size)) <=
         limits_.adjustments;
}

void SamplingRows::AddChoice(int row, const Sequence& sequence,
                             uint32_t output_position, TokenMask mask) {
  const v1::ResolvedSampling& sampling = sequence.sampling();
  const bool is_adjusted = MostAdjustments(sequence, output_position) > 0;
  const size_t first = adjustments_.size();
  if (is_adjusted) AddAdjustments(sequence, output_position);
  if (is_adjusted || !mask.empty()) {
    adjusted_.push_back(
        {.row = row,
         .mask = mask.empty() ? -1 : static_cast<int32_t>(masks_.size()),
         .first_adjustment = static_cast<int32_t>(first),
         .num_adjustments = static_cast<int32_t>(adjustments_.size() - first),
         .masks_ids = MasksStopIds(sampling, output_position) ? 1 : 0,
         .repetition = sampling.repetition_penalty(),
         .presence = sampling.presence_penalty(),
         .frequency = sampling.frequency_penalty()});
    masks_.insert(masks_.end(), mask.begin(), mask.end());
  }
  if (is_adjusted || !mask.empty() || sampling.temperature() != 0) {
    sampled_.push_back(
        {.row = row,
         .temperature = sampling.temperature(),
         .top_k = sampling.top_k(),
         .top_p = sampling.top_p(),
         .min_p = sampling.min_p(),
         .noise = SamplingNoise(sampling.seed(), sequence.id().choice,
                                output_position)});
  }
  if (sampling.logprobs_plus_one() > 0) {
    AddPrompt(row, cuda::kChosenToken,
              static_cast<int>(sampling.logprobs_plus_one()) - 1);
  }
}

void SamplingRows::AddPrompt(int row, uint32_t token, int num_top) {
  CHECK_LE(num_top, cuda::kMostTop);
  scored_.push_back({.row = row, .token = token, .num_top = num_top});
}

void SamplingRows::AddAdjustments(const Sequence& sequence,
                                  uint32_t output_position) {
  const v1::ResolvedSampling& sampling = sequence.sampling();
  const size_t first = adjustments_.size();
  for (int i = 0; i < sampling.bias_token_ids_size(); ++i) {
    Adjustment(sampling.bias_token_ids(i)).bias = sampling.bias_values(i);
  }
  if (HasPenalties(sampling)) {
    // The prompt matters to repetition alone.
    for (const uint32_t id : sampling.repetition_penalty() != 1
                                 ? sequence.tokens()
                                 : sequence.output()) {
      Adjustment(id).is_penalized = 1;
    }
    for (const uint32_t id : sequence.output()) ++Adjustment(id).count;
  }
  if (MasksStopIds(sampling, output_position)) {
    for (const uint32_t id : sampling.stop_token_ids()) {
      Adjustment(id).is_masked = 1;
    }
  }
  for (size_t i = first; i < adjustments_.size(); ++i) {
    place_of_[adjustments_[i].id] = -1;
  }
}

cuda::LogitAdjustment& SamplingRows::Adjustment(uint32_t id) {
  if (place_of_[id] < 0) {
    CHECK_LT(adjustments_.size(), limits_.adjustments);
    place_of_[id] = static_cast<int32_t>(adjustments_.size());
    adjustments_.push_back(
        {.id = id, .bias = 0, .count = 0, .is_penalized = 0, .is_masked = 0});
  }
  return adjustments_[place_of_[id]];
}

v1::PositionLogprobs LogprobsOf(const cuda::RowLogprobs& row, uint32_t token,
                                bool has_mask) {
  const double log_sum = std::log(static_cast<double>(row.sum_high) * 0x1p-16 +
                                  static_cast<double>(row.sum_low) * 0x1p-80);
  const auto fill = [&](uint32_t id, float logit, uint32_t rank,
                        v1::TokenLogprob* out) {
    // The difference of equal infinities is no number.
    const double below_max =
        logit == row.max ? 0 : static_cast<double>(logit) - row.max;
    out->set_token_id(id);
    out->set_logprob(static_cast<float>(below_max - log_sum));
    out->set_rank(rank);
  };
  v1::PositionLogprobs logprobs;
  fill(token, row.token_logit, row.token_rank, logprobs.mutable_token());
  for (int i = 0; i < row.num_top; ++i) {
    // What a mask allows is more than that.
    constexpr float kForbidden = -std::numeric_limits<float>::infinity();
    if (has_mask && row.top_logits[i] == kForbidden) break;
    fill(row.top_ids[i], row.top_logits[i], static_cast<uint32_t>(i + 1),
         logprobs.add_top());
  }
  return logprobs;
}

}  // namespace lockstep
