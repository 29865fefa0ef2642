#include "kernels/cuda/emulation/grid.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <utility>

#include "kernels/cuda/emulation/fiber.h"

namespace lockstep::emulation {
namespace {

constexpr unsigned kWarpLanes = 32;
constexpr unsigned kMaxThreads = 1024;
constexpr unsigned kMaxGridYZ = 65535;
// What a block of every GPU from sm_80 on may ask for.
constexpr size_t kMaxSharedBytes = 99 * 1024;
constexpr size_t kExchangeBytes = 32;

// Not barriers of the source.
constexpr Site kBeginsExchange = {nullptr, 0};
constexpr Site kEndsExchange = {nullptr, 1};

struct Barrier {
  unsigned arrived = 0;
  uint64_t generation = 0;
  Site site = {nullptr, 0};  // of those that arrived
};

struct Warp {
  uint32_t born = 0, live = 0;  // lanes, one bit each
  alignas(16) std::byte shown[kWarpLanes][kExchangeBytes];
  Barrier of_all;
  std::map<uint32_t, Barrier> of_some;  // by mask

  Barrier& BarrierOf(uint32_t mask) {
    return mask == 0xffffffff ? of_all : of_some[mask];
  }
};

struct Thread {
  Fiber fiber;
  Dim3 index;
  unsigned id = 0;
  // What it waits for: the end of a generation.
  const Barrier* barrier = nullptr;
  uint64_t generation = 0;

  bool waits() const {
    return barrier != nullptr && barrier->generation == generation;
  }
};

std::string Name(const Site& site) {
  if (site.file == nullptr) return "a shuffle or vote";
  return std::string(site.file) + ":" + std::to_string(site.line);
}

std::string Name(const Dim3& index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " +
         std::to_string(index.z) + ")";
}

// One grid at a time of one OS thread; its fibers serve grid after grid.
class Machine {
 public:
  Conduct conduct;
  std::vector<Site> sites;

  std::string Run(const Dim3& grid, const Dim3& block, size_t shared_bytes,
                  const std::function<void()>& thread);

  Thread& self() { return *current_; }
  Warp& warp() { return warps_[current_->id / kWarpLanes]; }
  const Dim3& grid_dim() const { return grid_; }
  const Dim3& block_dim() const { return block_; }
  const Dim3& block_index() const { return index_; }
  void* shared() { return shared_.get(); }
  Barrier& block_barrier() { return barrier_; }
  unsigned live() const { return live_; }

  // Whether the barrier is there at all.
  bool Passes(const Site& site);
  void Wait(Barrier& barrier, unsigned expected, const Site& site);
  // Ends the grid, once this thread leaves: it does not go on. Apart from that,
  // as what lies on its stack then is not destroyed.
  void Fail(const std::string& what);
  void Leave();

 private:
  static void Body(void* machine);
  void RunBlock();
  bool RunSome();
  void End();
  std::string Deadlock() const;

  Dim3 grid_, block_, index_;
  const std::function<void()>* thread_ = nullptr;
  std::vector<std::unique_ptr<Thread>> threads_;  // as many as ever
  std::vector<unsigned> order_;
  std::vector<Warp> warps_;
  // Exactly as large as asked for, so that AddressSanitizer sees its end.
  std::unique_ptr<std::byte[]> shared_;
  size_t shared_bytes_ = 0;
  Barrier barrier_;
  unsigned live_ = 0;
  Thread* current_ = nullptr;
  std::string fault_;
  std::mt19937 random_{7};
};

thread_local Machine machine;

std::string Machine::Run(const Dim3& grid, const Dim3& block,
                         size_t shared_bytes,
                         const std::function<void()>& thread) {
  const unsigned threads = block.x * block.y * block.z;
  if (threads == 0 || threads > kMaxThreads) {
    return "a block of " + std::to_string(threads) + " threads; a GPU takes 1" +
           " to " + std::to_string(kMaxThreads);
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0 || grid.y > kMaxGridYZ ||
      grid.z > kMaxGridYZ) {
    return "a grid of " + Name(grid) + " blocks; a GPU takes 1 to " +
           std::to_string(kMaxGridYZ) + " in y and z";
  }
  if (shared_bytes > kMaxSharedBytes) {
    return std::to_string(shared_bytes) + " bytes of shared memory; a GPU" +
           " takes " + std::to_string(kMaxSharedBytes);
  }
  grid_ = grid;
  block_ = block;
  thread_ = &thread;
  shared_bytes_ = shared_bytes;
  shared_.reset(new std::byte[shared_bytes]);
  fault_.clear();
  while (threads_.size() < threads) {
    threads_.push_back(std::make_unique<Thread>());
  }
  const unsigned blocks = grid.x * grid.y * grid.z;
  for (unsigned i = 0; i < blocks && fault_.empty(); ++i) {
    const unsigned n = conduct.order == Order::kForward ? i : blocks - 1 - i;
    index_ = {n % grid.x, n / grid.x % grid.y, n / grid.x / grid.y};
    RunBlock();
  }
  if (fault_.empty()) return "";
  return "block " + Name(index_) + ": " + fault_;
}

void Machine::RunBlock() {
  live_ = block_.x * block_.y * block_.z;
  barrier_ = {};
  warps_.assign((live_ + kWarpLanes - 1) / kWarpLanes, {});
  std::memset(shared_.get(), 0xff, shared_bytes_);
  order_.resize(live_);
  for (unsigned i = 0; i < live_; ++i) {
    Thread& thread = *threads_[i];
    thread.id = order_[i] = i;
    thread.index = {i % block_.x, i / block_.x % block_.y,
                    i / block_.x / block_.y};
    thread.barrier = nullptr;
    Warp& warp = warps_[i / kWarpLanes];
    warp.born = warp.live |= 1u << i % kWarpLanes;
    thread.fiber.Start(&Body, this);
  }
  if (conduct.order == Order::kReverse) {
    std::reverse(order_.begin(), order_.end());
  }
  TsanRelease(this);  // what is there before a block is there for its threads
  while (live_ > 0 && fault_.empty()) {
    if (!RunSome() && fault_.empty()) fault_ = Deadlock();
  }
  TsanAcquire(&live_);
}

// False if all wait.
bool Machine::RunSome() {
  if (conduct.order == Order::kShuffled) {
    std::shuffle(order_.begin(), order_.end(), random_);
  }
  bool progress = false;
  for (unsigned i : order_) {
    Thread& thread = *threads_[i];
    if (thread.fiber.done() || thread.waits()) continue;
    progress = true;
    current_ = &thread;
    thread.fiber.Resume();
    if (!fault_.empty()) return true;
  }
  return progress;
}

void Machine::Body(void* self) {
  auto* machine = static_cast<Machine*>(self);
  TsanAcquire(machine);
  (*machine->thread_)();
  TsanRelease(&machine->live_);
  machine->End();
}

void Machine::End() {
  warp().live &= ~(1u << current_->id % kWarpLanes);
  --live_;
  // Who has exited is not waited for.
  if (live_ > 0 && barrier_.arrived >= live_) {
    barrier_.arrived = 0;
    ++barrier_.generation;
  }
}

bool Machine::Passes(const Site& site) {
  const TsanIgnore ignore;
  if (std::find(sites.begin(), sites.end(), site) == sites.end()) {
    sites.push_back(site);
  }
  return conduct.without != nullptr && *conduct.without == site;
}

void Machine::Wait(Barrier& barrier, unsigned expected, const Site& site) {
  if (barrier.arrived > 0 && barrier.site != site) {
    Fail("threads wait at " + Name(barrier.site) + " and at " + Name(site) +
         " for each other");
    return Leave();
  }
  barrier.site = site;
  // CUDA orders memory at a barrier, not at an exchange of registers.
  if (site.file != nullptr) TsanRelease(&barrier);
  if (++barrier.arrived >= expected) {
    barrier.arrived = 0;
    ++barrier.generation;
  } else {
    current_->barrier = &barrier;
    current_->generation = barrier.generation;
    Leave();
  }
  if (site.file != nullptr) TsanAcquire(&barrier);
}

void Machine::Fail(const std::string& what) {
  fault_ = "thread " + Name(current_->index) + ": " + what;
}

// What a thread has done so far has happened when its block ends, even if it is
// never resumed.
void Machine::Leave() {
  TsanRelease(&live_);
  current_->fiber.Yield();
}

std::string Machine::Deadlock() const {
  for (unsigned i : order_) {
    const Thread& thread = *threads_[i];
    if (thread.fiber.done()) continue;
    return "thread " + Name(thread.index) + " waits at " +
           Name(thread.barrier->site) + " for threads that do not come";
  }
  return "";
}

// The lanes of a mask meet.
void Meet(uint32_t mask, const Site& site) {
  Warp& warp = machine.warp();
  if ((mask >> Lane() & 1) == 0) {
    machine.Fail("not in the mask it gives");
    return machine.Leave();
  }
  if ((mask & warp.born & ~warp.live) != 0) {
    machine.Fail("names a lane that has exited");
    return machine.Leave();
  }
  machine.Wait(warp.BarrierOf(mask),
               static_cast<unsigned>(std::popcount(mask & warp.live)), site);
}

}  // namespace

void SetConduct(const Conduct& conduct) { machine.conduct = conduct; }

std::string RunGrid(const Dim3& grid, const Dim3& block, size_t shared_bytes,
                    const std::function<void()>& thread) {
  return machine.Run(grid, block, shared_bytes, thread);
}

std::vector<Site> TakeBarrierSites() {
  return std::exchange(machine.sites, {});
}

const Dim3& ThreadIndex() { return machine.self().index; }
const Dim3& BlockIndex() { return machine.block_index(); }
const Dim3& BlockDim() { return machine.block_dim(); }
const Dim3& GridDim() { return machine.grid_dim(); }
void* SharedMemory() { return machine.shared(); }
unsigned Lane() { return machine.self().id % kWarpLanes; }

void SyncBlock(const Site& site) {
  if (machine.Passes(site)) return;
  machine.Wait(machine.block_barrier(), machine.live(), site);
}

void SyncWarp(uint32_t mask, const Site& site) {
  if (machine.Passes(site)) return;
  Meet(mask, site);
}

void BeginExchange(uint32_t mask, const void* value, size_t bytes) {
  {
    const TsanIgnore ignore;
    std::memcpy(machine.warp().shown[Lane()], value, bytes);
  }
  Meet(mask, kBeginsExchange);
}

const void* LaneBytes(uint32_t mask, unsigned lane) {
  if ((mask >> lane & 1) == 0) {
    machine.Fail("reads a lane not in its mask");
    machine.Leave();
  }
  return machine.warp().shown[lane];
}

void EndExchange(uint32_t mask) { Meet(mask, kEndsExchange); }

}  // namespace lockstep::emulation
