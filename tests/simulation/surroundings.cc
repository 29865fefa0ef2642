#include "tests/simulation/surroundings.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>

#include "tests/testing/memory/replaced_new.h"

namespace lockstep::testing {
namespace {

constexpr size_t kGranule = 16;  // of malloc
constexpr size_t kMaxPadding = 24 * kGranule;
constexpr size_t kMaxDecoy = 512;
constexpr int kDecoys = 32;
constexpr int64_t kMaxSkewSeconds = 1 << 30;
constexpr int64_t kMaxJumpSeconds = 1 << 10;

struct State {
  bool active = false;
  uint64_t random = 0;
  int64_t skew_seconds = 0;
  std::array<void*, kDecoys> decoys = {};

  // xorshift64* (Vigna: An experimental exploration of Marsaglia's xorshift
  // generators, scrambled, 2016).
  uint64_t Next() {
    random ^= random >> 12;
    random ^= random << 25;
    random ^= random >> 27;
    return (random * 0x2545f4914f6cdd1d) >> 32;
  }
};

thread_local State state;

int64_t SkewSeconds() {
  return state.skew_seconds +
         static_cast<int64_t>(state.Next() % kMaxJumpSeconds);
}

}  // namespace

// Blocks of other sizes, with others freed between them, lie elsewhere.
size_t OnNew(size_t bytes) {
  if (!state.active) return bytes;
  const uint64_t draw = state.Next();
  if (draw % 8 == 0) {
    void*& decoy = state.decoys[draw / 8 % kDecoys];
    std::free(decoy);
    decoy = std::malloc(1 + draw / 256 % kMaxDecoy);
  }
  return bytes + state.Next() % (kMaxPadding / kGranule) * kGranule;
}

Surroundings::Surroundings(uint64_t seed) {
  state.random = seed * 2 + 1;  // not 0
  for (int i = 0; i < 8; ++i) state.Next();
  state.skew_seconds = static_cast<int64_t>(state.Next() % kMaxSkewSeconds);
  state.active = true;
}

Surroundings::~Surroundings() {
  state.active = false;
  for (void*& decoy : state.decoys) {
    std::free(decoy);
    decoy = nullptr;
  }
}

}  // namespace lockstep::testing

using lockstep::testing::SkewSeconds;
using lockstep::testing::state;

extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const long result = syscall(SYS_clock_gettime, clock, time);
  if (result == 0 && state.active) {
    time->tv_sec += SkewSeconds();
  }
  return static_cast<int>(result);
}
