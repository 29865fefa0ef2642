#pragma once

#include <absl/types/span.h>

namespace lockstep {

// out[i] = kernels::TreeSum over ranks of of_rank[rank][i]: what every
// implementation of a collective sums with. A rank's values must not lie in
// `out`. REQUIRES: at least one rank.
void SumOverRanks(absl::Span<const float* const> of_rank,
                  absl::Span<float> out);

}  // namespace lockstep
