#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <atomic>
#include <cstdint>
#include <vector>

namespace lockstep {

// Where the ranks of a group meet, in memory they share: threads or processes.
// All zeros is its first state, so it lives in fresh memory as it is. It holds
// no lock: a rank that dies anywhere leaves the others waiting, until Abort or
// their time limit.
//
//   LOCKSTEP_RETURN_IF_ERROR(barrier->Wait({.rank = rank, .size = size}));
//
// What a rank wrote before Wait, all see after it. Abort may come from any
// thread of any process that maps the memory.
class SharedBarrier {
 public:
  static constexpr int kMaxRanks = 64;

  struct Arrival {
    int rank = 0;
    int size = 1;
    int spins = 0;  // looks before it sleeps
    absl::Duration timeout = absl::InfiniteDuration();
  };

  // Returns OK when all ranks have called it; error() once aborted;
  // DEADLINE_EXCEEDED names the ranks that did not come.
  absl::Status Wait(const Arrival& arrival);

  // Ends all calls of Wait, in progress and to come, in every process. The
  // first error stays: its message, and whom it blames.
  void Abort(const absl::Status& error);

  // UNAVAILABLE with what it was aborted with.
  absl::Status error() const;

 private:
  static constexpr int kMaxReasonBytes = 512;  // longer ones are cut

  // Each rank writes its own flag alone, in a cache line of its own: a meeting
  // of two costs one transfer each way.
  struct alignas(64) Flag {
    std::atomic<uint32_t> round;  // how often this rank has come
  };

  // Whether ranks 0 to size - 1 have come to `round`, from `*met` on, which is
  // moved up to the first that has not.
  bool HaveCome(uint32_t round, int size, int* met) const;
  void Sleep(uint32_t round, const Arrival& arrival, int* met);
  std::vector<int> LateRanks(uint32_t round, int size) const;
  bool aborted() const { return aborted_.load(std::memory_order_acquire); }

  Flag flags_[kMaxRanks];
  // The futex: changes when a round is complete while somebody sleeps, and when
  // the group is aborted.
  alignas(64) std::atomic<uint32_t> bell_;
  std::atomic<uint32_t> sleepers_;  // about to sleep, or asleep
  // Apart from what changes often: it is read in every look.
  alignas(64) std::atomic<bool> aborted_;
  enum : uint32_t { kNoReason, kWriting, kWritten };
  std::atomic<uint32_t> reason_state_;
  int32_t blamed_;  // 1 + the rank; 0: none
  uint32_t reason_bytes_;
  char reason_[kMaxReasonBytes];
};

}  // namespace lockstep
