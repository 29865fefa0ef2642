#include "worker/collectives/shared_barrier.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace lockstep {
namespace {

// A rank that runs on the same core as the one it waits for lets it run first;
// a yield is cheaper than a sleep and its wake.
constexpr int kYields = 8;

static_assert(std::atomic<uint32_t>::is_always_lock_free);

void SleepWhile(std::atomic<uint32_t>* word, uint32_t value) {
  // Wakes early for any reason; the caller looks again.
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT, value,
          nullptr, nullptr, 0);
}

void WakeAll(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE, INT32_MAX,
          nullptr, nullptr, 0);
}

}  // namespace

bool SharedBarrier::Wait(int size, int spins) {
  const uint32_t round = round_.load(std::memory_order_acquire);
  if (round & kAborted) return false;

  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 ==
      static_cast<uint32_t>(size)) {
    arrived_.store(0, std::memory_order_relaxed);
    // Against the sleepers' own order: they count themselves, then look.
    const uint32_t before = round_.fetch_add(kRound);
    if (sleepers_.load() != 0) WakeAll(&round_);
    return !(before & kAborted);
  }

  uint32_t now = round;
  for (int i = 0; i < spins && now == round; ++i) {
    __builtin_ia32_pause();
    now = round_.load(std::memory_order_acquire);
  }
  for (int i = 0; i < kYields && now == round; ++i) {
    sched_yield();
    now = round_.load(std::memory_order_acquire);
  }
  if (now == round) {
    sleepers_.fetch_add(1);
    while ((now = round_.load()) == round) SleepWhile(&round_, round);
    sleepers_.fetch_sub(1);
  }
  return !(now & kAborted);
}

void SharedBarrier::Abort(absl::string_view reason) {
  uint32_t expected = kNoReason;
  if (reason_state_.compare_exchange_strong(expected, kWriting)) {
    reason_bytes_ = std::min<size_t>(reason.size(), kMaxReasonBytes);
    std::memcpy(reason_, reason.data(), reason_bytes_);
    reason_state_.store(kWritten, std::memory_order_release);
  }
  round_.fetch_or(kAborted);
  WakeAll(&round_);
}

bool SharedBarrier::aborted() const {
  return round_.load(std::memory_order_acquire) & kAborted;
}

std::string SharedBarrier::reason() const {
  // Two ranks may abort at once, or one die while it writes.
  if (reason_state_.load(std::memory_order_acquire) != kWritten) {
    return "the group was aborted";
  }
  return std::string(reason_, reason_bytes_);
}

}  // namespace lockstep
