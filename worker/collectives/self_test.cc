#include "worker/collectives/self_test.h"

#include <absl/strings/str_cat.h>

#include <cmath>
#include <cstddef>
#include <vector>

#include "common/status_macros.h"
#include "worker/collectives/blamed_rank.h"
#include "worker/collectives/rank_sum.h"

namespace lockstep {
namespace {

constexpr size_t kCounts[] = {1, 1001, 150'001};

// Whose sum is exact in any order.
constexpr int kWholeNumbers = 1021;

// Of different magnitude, so that the order of a sum shows, or whole numbers;
// no two ranks' and no two neighbours are alike.
std::vector<float> ValuesOf(int rank, size_t count, bool are_whole) {
  std::vector<float> values(count);
  for (size_t i = 0; are_whole && i < count; ++i) {
    values[i] = static_cast<int>((i * 31 + rank * 17) % kWholeNumbers) - 510;
  }
  if (are_whole) return values;
  for (size_t i = 0; i < count; ++i) {
    const int exponent = static_cast<int>((i + rank * 7) % 21) - 10;
    values[i] =
        std::ldexp(1.0f + (rank + 1) * 0.01f + (i % 97) * 1e-5f, exponent);
  }
  return values;
}

// The first difference, for the message.
absl::Status CheckEqual(absl::string_view what, absl::Span<const float> got,
                        absl::Span<const float> expected) {
  for (size_t i = 0; i < expected.size(); ++i) {
    if (got[i] == expected[i]) continue;
    return absl::InternalError(
        absl::StrCat("the self-test of the collectives failed: ", what,
                     ", value ", i, " of ", expected.size(), ", is ", got[i],
                     " and should be ", expected[i], "."));
  }
  return absl::OkStatus();
}

absl::Status TestSize(Collective* collective, size_t count) {
  const int size = collective->size();
  std::vector<std::vector<float>> of_rank;
  std::vector<const float*> pointers;
  for (int rank = 0; rank < size; ++rank) {
    of_rank.push_back(ValuesOf(rank, count, !collective->sums_in_rank_order()));
    pointers.push_back(of_rank.back().data());
  }
  std::vector<float> gathered(size * count);
  LOCKSTEP_RETURN_IF_ERROR(collective->AllGather(of_rank[collective->rank()],
                                                 absl::MakeSpan(gathered)));
  for (int rank = 0; rank < size; ++rank) {
    const absl::Status equal = CheckEqual(
        absl::StrCat("what rank ", collective->rank(), " got from rank ", rank),
        absl::MakeConstSpan(gathered).subspan(rank * count, count),
        of_rank[rank]);
    if (!equal.ok()) return BlameRank(rank, equal);
  }
  std::vector<float> expected(count);
  SumOverRanks(pointers, absl::MakeSpan(expected));
  std::vector<float> sum = of_rank[collective->rank()];
  LOCKSTEP_RETURN_IF_ERROR(collective->AllReduceSum(absl::MakeSpan(sum)));
  return CheckEqual(absl::StrCat("rank ", collective->rank(), "'s sum"), sum,
                    expected);
}

}  // namespace

absl::Status TestCollective(Collective* collective, absl::Duration timeout) {
  collective->SetTimeout(timeout);
  for (const size_t count : kCounts) {
    LOCKSTEP_RETURN_IF_ERROR(TestSize(collective, count));
  }
  collective->SetTimeout(absl::InfiniteDuration());
  return absl::OkStatus();
}

}  // namespace lockstep
