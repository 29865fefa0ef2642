#pragma once

#include <absl/strings/string_view.h>

#include <atomic>
#include <cstdint>
#include <string>

namespace lockstep {

// Where the ranks of a group meet, in memory they share: threads or processes.
// All zeros is its first state, so it lives in fresh memory as it is. It holds
// no lock: a rank that dies anywhere leaves the others waiting, until Abort.
//
//   if (!barrier->Wait(size, spins)) return Unavailable(barrier->reason());
//
// What a rank wrote before Wait, all see after it. Abort may come from any
// thread of any process that maps the memory.
class SharedBarrier {
 public:
  // Returns true when `size` ranks have called it, false once aborted. Looks
  // `spins` times before it sleeps.
  bool Wait(int size, int spins);

  // Ends all calls of Wait, in progress and to come. The first reason stays.
  void Abort(absl::string_view reason);

  bool aborted() const;
  std::string reason() const;

 private:
  static constexpr uint32_t kAborted = 1;      // a bit of round_
  static constexpr uint32_t kRound = 2;        // what a round adds to it
  static constexpr int kMaxReasonBytes = 512;  // longer ones are cut

  // The futex: changes when a round is complete and when the group is aborted.
  alignas(64) std::atomic<uint32_t> round_;
  alignas(64) std::atomic<uint32_t> arrived_;   // in this round
  alignas(64) std::atomic<uint32_t> sleepers_;  // about to sleep, or asleep
  enum : uint32_t { kNoReason, kWriting, kWritten };
  std::atomic<uint32_t> reason_state_;
  uint32_t reason_bytes_;
  char reason_[kMaxReasonBytes];
};

}  // namespace lockstep
