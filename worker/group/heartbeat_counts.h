#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <vector>

namespace lockstep {

// How many heartbeats have come from each of the ranks that this one hears. The
// I/O thread counts, any thread reads.
class HeartbeatCounts {
 public:
  explicit HeartbeatCounts(const std::vector<int>& peers) {
    for (const int rank : peers) counts_[rank] = 0;
  }

  // REQUIRES: `rank` is a peer.
  void Count(int rank) {
    counts_.at(rank).fetch_add(1, std::memory_order_relaxed);
  }

  std::map<int, uint64_t> Read() const {
    std::map<int, uint64_t> counts;
    for (const auto& [rank, count] : counts_) {
      counts[rank] = count.load(std::memory_order_relaxed);
    }
    return counts;
  }

 private:
  std::map<int, std::atomic<uint64_t>> counts_;  // its keys never change
};

}  // namespace lockstep
