#pragma once

#include <cstdint>
#include <vector>

#include "kernels/cuda/sampling/adjust.h"
#include "kernels/cuda/sampling/logprobs.h"
#include "kernels/cuda/sampling/sample.h"
#include "proto/sampling.pb.h"
#include "worker/core/sequence.h"
#include "worker/sampling/token_mask.h"

namespace lockstep {

// What a step's rows of logits ask of the kernels that choose tokens, as these
// read it.
//
//   SamplingRows rows({.vocab_size = vocab_size, …});
//   rows.Clear();
//   if (rows.HasRoomFor(sequence, place)) …AddChoice(row, …, mask);
//   …stage rows.adjusted() and the others…
//
// A pure function of what is added, in order. One thread; allocates nothing
// after its construction.
class SamplingRows {
 public:
  struct Limits {
    int vocab_size = 0;
    int rows = 0;         // of logits
    int choices = 0;      // rows that choose
    int adjustments = 0;  // of all rows
  };

  explicit SamplingRows(const Limits& limits);

  void Clear();

  // Whether the adjustments that are left suffice for a token of the sequence
  // at that place in its output, were all its ids different. Never of one that
  // keeps ids out: the host chooses for it.
  bool HasRoomFor(const Sequence& sequence, uint32_t output_position) const;

  // Row `row` chooses that token; no mask: among all ids. REQUIRES: HasRoomFor;
  // a sequence with penalties has all tokens before that place.
  void AddChoice(int row, const Sequence& sequence, uint32_t output_position,
                 TokenMask mask);

  // Row `row` scores a prompt's token, and the `num_top` most probable ones.
  void AddPrompt(int row, uint32_t token, int num_top);

  const std::vector<cuda::AdjustedRow>& adjusted() const { return adjusted_; }
  const std::vector<cuda::LogitAdjustment>& adjustments() const {
    return adjustments_;
  }
  const std::vector<uint32_t>& masks() const { return masks_; }
  // Of the choices those that are not just the largest logit.
  const std::vector<cuda::SampledRow>& sampled() const { return sampled_; }
  const std::vector<cuda::ScoredRow>& scored() const { return scored_; }

 private:
  void AddAdjustments(const Sequence& sequence, uint32_t output_position);
  // What the row does to an id; nothing so far, if it is new.
  cuda::LogitAdjustment& Adjustment(uint32_t id);

  const Limits limits_;
  std::vector<int32_t> place_of_;  // [vocab_size], -1 between calls
  std::vector<cuda::AdjustedRow> adjusted_;
  std::vector<cuda::LogitAdjustment> adjustments_;
  std::vector<uint32_t> masks_;
  std::vector<cuda::SampledRow> sampled_;
  std::vector<cuda::ScoredRow> scored_;
};

// What ScoreRows made of a row as the worker's sampler has it.
// `token` is the scored one; with a mask, only ids in it count.
v1::PositionLogprobs LogprobsOf(const cuda::RowLogprobs& row, uint32_t token,
                                bool has_mask);

}  // namespace lockstep
