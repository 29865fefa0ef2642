#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

namespace lockstep::emulation {

struct Dim3 {
  unsigned x = 1, y = 1, z = 1;
};

// Where a kernel calls a barrier. One in a header is the same in every object
// that has a copy of its name.
struct Site {
  const char* file;
  int line;

  friend bool operator==(const Site& a, const Site& b) {
    if (a.line != b.line) return false;
    if (a.file == nullptr || b.file == nullptr) return a.file == b.file;
    return std::strcmp(a.file, b.file) == 0;
  }
};

// The order in which a block's threads run, from one barrier to the next.
enum class Order { kForward, kReverse, kShuffled };
inline constexpr Order kOrders[] = {Order::kForward, Order::kReverse,
                                    Order::kShuffled};

// How this thread runs grids from now on.
struct Conduct {
  Order order = Order::kForward;
  // A barrier to pass without waiting, as if it were not in the source: a test
  // that still passes then did not need it.
  const Site* without = nullptr;
};
void SetConduct(const Conduct& conduct);

// Runs `thread` once for each thread of each block of a grid, on the calling
// thread: the blocks one after the other, a block's threads as fibers. Dynamic
// shared memory starts each block as NaN. Returns what a GPU would not survive
// or not show, in a sentence that names the block; "" if all went well:
//
// - more threads, blocks or shared memory than a GPU takes
// - a barrier that not all threads of the block, or lanes of the mask, reach
// - a lane that takes part in an exchange it is not named in, or names one that
//   has exited
//
// The grid ends at the first fault.
std::string RunGrid(const Dim3& grid, const Dim3& block, size_t shared_bytes,
                    const std::function<void()>& thread);

// The barriers that the grids of this thread have passed since the last call.
std::vector<Site> TakeBarrierSites();

// What a running thread sees and does. REQUIRES: called by `thread` above.

const Dim3& ThreadIndex();
const Dim3& BlockIndex();
const Dim3& BlockDim();
const Dim3& GridDim();
void* SharedMemory();
unsigned Lane();

void SyncBlock(const Site& site);
void SyncWarp(uint32_t mask, const Site& site);

// Shows 32 bytes to the lanes of the mask; from its return to the next call
// of EndExchange, LaneBytes(i) are those that lane i shows.
void BeginExchange(uint32_t mask, const void* value, size_t bytes);
const void* LaneBytes(uint32_t mask, unsigned lane);
void EndExchange(uint32_t mask);

}  // namespace lockstep::emulation
