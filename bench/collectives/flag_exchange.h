#pragma once

#include <absl/types/span.h>

#include <atomic>
#include <cstdint>
#include <memory>

namespace lockstep::bench {

// The least that an all-reduce of two ranks over shared memory can be: each
// copies its part to where the other reads it, raises a flag, waits for the
// other's, and adds. No abort, no limit, no check, no sleep: what a collective
// is measured against.
//
//   FlagExchange exchange(2048);
//   exchange.AllReduceSum(/*rank=*/0, data);  // as rank 1 does at the same
//   time
//
// One thread a rank.
class FlagExchange {
 public:
  explicit FlagExchange(size_t count);

  // REQUIRES: data has `count` floats; both ranks call it equally often.
  void AllReduceSum(int rank, absl::Span<float> data);

 private:
  struct alignas(64) Rank {
    std::atomic<uint32_t> round = 0;
    std::unique_ptr<float[]> parts[2];  // by parity of the round
  };

  Rank ranks_[2];
};

}  // namespace lockstep::bench
