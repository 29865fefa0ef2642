#include "worker/collectives/rank_sum.h"

#include <algorithm>
#include <cstddef>

namespace lockstep {
namespace {

// A sum is taken in pieces that stay in the first-level cache.
constexpr size_t kPiece = 1024;

// Of the `count` values from `begin` on.
void SumPiece(absl::Span<const float* const> of_rank, size_t begin,
              size_t count, float* __restrict out) {
  const size_t ranks = of_rank.size();
  const float* const first = of_rank.front() + begin;
  if (ranks == 1) {
    std::copy_n(first, count, out);
    return;
  }
  if (ranks == 2) {
    const float* const second = of_rank[1] + begin;
    for (size_t i = 0; i < count; ++i) out[i] = first[i] + second[i];
    return;
  }
  size_t left = 1;
  while (left * 2 < ranks) left *= 2;
  SumPiece(of_rank.first(left), begin, count, out);
  float right[kPiece];
  SumPiece(of_rank.subspan(left), begin, count, right);
  for (size_t i = 0; i < count; ++i) out[i] += right[i];
}

}  // namespace

void SumOverRanks(absl::Span<const float* const> of_rank,
                  absl::Span<float> out) {
  for (size_t begin = 0; begin < out.size(); begin += kPiece) {
    SumPiece(of_rank, begin, std::min(kPiece, out.size() - begin),
             out.data() + begin);
  }
}

}  // namespace lockstep
