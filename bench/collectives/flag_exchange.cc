#include "bench/collectives/flag_exchange.h"

#include <algorithm>

namespace lockstep::bench {

FlagExchange::FlagExchange(size_t count) {
  for (Rank& rank : ranks_) {
    for (auto& part : rank.parts) part = std::make_unique<float[]>(count);
  }
}

void FlagExchange::AllReduceSum(int rank, absl::Span<float> data) {
  Rank& own = ranks_[rank];
  const Rank& other = ranks_[1 - rank];
  const uint32_t round = own.round.load(std::memory_order_relaxed) + 1;
  float* const part = own.parts[round % 2].get();
  std::copy(data.begin(), data.end(), part);
  own.round.store(round, std::memory_order_release);
  while (other.round.load(std::memory_order_acquire) < round) {
    __builtin_ia32_pause();
  }
  const float* const first = ranks_[0].parts[round % 2].get();
  const float* const second = ranks_[1].parts[round % 2].get();
  for (size_t i = 0; i < data.size(); ++i) data[i] = first[i] + second[i];
}

}  // namespace lockstep::bench
