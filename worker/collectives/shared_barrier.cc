#include "worker/collectives/shared_barrier.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/string_view.h>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <vector>

#include "worker/collectives/blamed_rank.h"

namespace lockstep {
namespace {

using Clock = std::chrono::steady_clock;

// A rank that runs on the same core as the one it waits for lets it run first;
// a yield is cheaper than a sleep and its wake.
constexpr int kYields = 8;

static_assert(std::atomic<uint32_t>::is_always_lock_free);

// Wakes early for any reason; the caller looks again.
void SleepWhile(std::atomic<uint32_t>* word, uint32_t value,
                absl::Duration at_most) {
  const timespec limit = absl::ToTimespec(at_most);
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAIT, value,
          at_most == absl::InfiniteDuration() ? nullptr : &limit, nullptr, 0);
}

void WakeAll(std::atomic<uint32_t>* word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(word), FUTEX_WAKE, INT32_MAX,
          nullptr, nullptr, 0);
}

// Ranks are at most one round apart; the counts may wrap around.
bool IsAt(uint32_t count, uint32_t round) {
  return static_cast<int32_t>(count - round) >= 0;
}

}  // namespace

absl::Status SharedBarrier::Wait(const Arrival& arrival) {
  std::atomic<uint32_t>& own = flags_[arrival.rank].round;
  const uint32_t round = own.load(std::memory_order_relaxed) + 1;
  if (aborted()) return error();

  // In one order with the sleepers' own: they count themselves, then look.
  own.store(round);
  int met = 0;
  if (sleepers_.load() != 0 && HaveCome(round, arrival.size, &met)) {
    bell_.fetch_add(1);
    WakeAll(&bell_);
  }

  bool all_came = HaveCome(round, arrival.size, &met);
  for (int i = 0; i < arrival.spins && !all_came && !aborted(); ++i) {
    __builtin_ia32_pause();
    all_came = HaveCome(round, arrival.size, &met);
  }
  for (int i = 0; i < kYields && !all_came && !aborted(); ++i) {
    sched_yield();
    all_came = HaveCome(round, arrival.size, &met);
  }
  if (!all_came && !aborted()) Sleep(round, arrival, &met);
  if (aborted()) return error();
  if (HaveCome(round, arrival.size, &met)) return absl::OkStatus();
  const std::vector<int> late = LateRanks(round, arrival.size);
  if (late.empty()) return absl::OkStatus();  // by now
  return BlameRank(late.front(), absl::DeadlineExceededError(absl::StrCat(
                                     "rank ", absl::StrJoin(late, ", "),
                                     " did not come within ",
                                     absl::FormatDuration(arrival.timeout))));
}

bool SharedBarrier::HaveCome(uint32_t round, int size, int* met) const {
  while (*met < size && IsAt(flags_[*met].round.load(), round)) ++*met;
  return *met == size;
}

void SharedBarrier::Sleep(uint32_t round, const Arrival& arrival, int* met) {
  const Clock::time_point begin = Clock::now();
  absl::Duration left = arrival.timeout;
  sleepers_.fetch_add(1);
  while (left > absl::ZeroDuration()) {
    const uint32_t bell = bell_.load();
    if (aborted() || HaveCome(round, arrival.size, met)) break;
    SleepWhile(&bell_, bell, left);
    left = arrival.timeout - absl::FromChrono(Clock::now() - begin);
  }
  sleepers_.fetch_sub(1);
}

std::vector<int> SharedBarrier::LateRanks(uint32_t round, int size) const {
  std::vector<int> late;
  for (int rank = 0; rank < size; ++rank) {
    if (!IsAt(flags_[rank].round.load(), round)) late.push_back(rank);
  }
  return late;
}

void SharedBarrier::Abort(const absl::Status& error) {
  uint32_t expected = kNoReason;
  if (reason_state_.compare_exchange_strong(expected, kWriting)) {
    const absl::string_view reason = error.message();
    reason_bytes_ = std::min<size_t>(reason.size(), kMaxReasonBytes);
    std::memcpy(reason_, reason.data(), reason_bytes_);
    blamed_ = BlamedRank(error).value_or(-1) + 1;
    reason_state_.store(kWritten, std::memory_order_release);
  }
  aborted_.store(true);
  bell_.fetch_add(1);
  WakeAll(&bell_);
}

absl::Status SharedBarrier::error() const {
  // Two ranks may abort at once, or one die while it writes.
  if (reason_state_.load(std::memory_order_acquire) != kWritten) {
    return absl::UnavailableError("the group was aborted");
  }
  const absl::Status error =
      absl::UnavailableError(absl::string_view(reason_, reason_bytes_));
  return blamed_ == 0 ? error : BlameRank(blamed_ - 1, error);
}

}  // namespace lockstep
