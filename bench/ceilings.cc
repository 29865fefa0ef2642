#include "bench/ceilings.h"

#include <absl/strings/str_format.h>
#include <glog/logging.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>
#include <numeric>
#include <vector>

#include "bench/peak_loops.h"
#include "kernels/threads/thread_pool.h"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Short enough that some passes are not disturbed by what else runs.
constexpr double kPassSeconds = 0.003;
constexpr int kComputePasses = 20;
constexpr int kReadPasses = 25;
constexpr int64_t kFirstRounds = 20'000;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kPieceBytes = 8 * kMiB;
constexpr int64_t kUnknownL3Bytes = 32 * kMiB;
constexpr int64_t kLeastDramBytes = 256 * kMiB;
constexpr int64_t kMostDramBytes = 1024 * kMiB;
constexpr int64_t kHugePage = 2 * kMiB;

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Every thread at its best, each by its own clock: cores do not slow each other
// down, but other programs may take one away for a while.
double OperationsPerSecond(kernels::ThreadPool& pool, const PeakLoop& loop) {
  std::vector<double> best(pool.size());
  pool.Run([&](int worker) {
    int64_t rounds = kFirstRounds;
    for (int pass = 0; pass < kComputePasses; ++pass) {
      const Clock::time_point begin = Clock::now();
      loop.run(rounds);
      const double rate = rounds * loop.operations / SecondsSince(begin);
      best[worker] = std::max(best[worker], rate);
      rounds = std::max<int64_t>(kFirstRounds,
                                 kPassSeconds * best[worker] / loop.operations);
    }
  });
  return std::accumulate(best.begin(), best.end(), 0.0);
}

// Memory that the threads touched each their own part of.
class Buffer {
 public:
  Buffer(int64_t bytes, kernels::ThreadPool& pool)
      : share_(bytes / pool.size() / kHugePage * kHugePage),
        bytes_(share_ * pool.size()),
        data_(Map(bytes_)) {
    madvise(data_, bytes_, MADV_HUGEPAGE);
    pool.Run([this](int worker) { std::memset(part(worker), 1, share_); });
  }
  ~Buffer() { munmap(data_, bytes_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  char* part(int worker) const { return data_ + worker * share_; }
  int64_t share() const { return share_; }

 private:
  static char* Map(int64_t bytes) {
    void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    PCHECK(data != MAP_FAILED) << "mapping " << bytes << " bytes to read";
    return static_cast<char*>(data);
  }

  const int64_t share_;
  const int64_t bytes_;
  char* const data_;
};

// Of the first `share` bytes of each thread's part, read piece after piece,
// again and again. All threads at once: they share what they read from.
double ReadBytesPerSecond(kernels::ThreadPool& pool, const PeakLoops& loops,
                          const Buffer& buffer, int64_t share) {
  const int64_t piece = std::min(share, kPieceBytes);
  const int64_t pieces = share / piece;
  double best = 0;
  for (const ReadLoop read : loops.reads) {
    int64_t first = 0, count = 1;
    for (int pass = 0; pass < kReadPasses; ++pass) {
      const Clock::time_point begin = Clock::now();
      pool.Run([&](int worker) {
        for (int64_t i = first; i < first + count; ++i) {
          read(buffer.part(worker) + i % pieces * piece, piece);
        }
      });
      const double rate = count * piece / SecondsSince(begin);
      best = std::max(best, pool.size() * rate);
      first += count;
      count = std::max<int64_t>(1, kPassSeconds * rate / piece);
    }
  }
  return best;
}

// What these cores share; glibc's figure is of the whole package.
int64_t L3Bytes() {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  int64_t kib = 0;  // "32768K"
  return file >> kib ? kib << 10 : kUnknownL3Bytes;
}

}  // namespace

Ceilings MeasureCeilings(int threads) {
  const bool has_avx512 = __builtin_cpu_supports("avx512f");
  const PeakLoops& loops = has_avx512 ? Avx512PeakLoops() : Avx2PeakLoops();
  kernels::ThreadPool pool({.num_threads = threads});

  Ceilings ceilings = {.threads = threads};
  ceilings.fp32 = OperationsPerSecond(pool, loops.fp32);
  if (has_avx512 && __builtin_cpu_supports("avx512bf16")) {
    ceilings.bf16 = OperationsPerSecond(pool, loops.bf16);
  }
  if (has_avx512 && __builtin_cpu_supports("avx512vnni")) {
    ceilings.int16 = OperationsPerSecond(pool, loops.int16);
    ceilings.int8 = OperationsPerSecond(pool, loops.int8);
  }

  ceilings.l3_bytes = L3Bytes();
  const Buffer buffer(
      std::clamp(4 * ceilings.l3_bytes, kLeastDramBytes, kMostDramBytes), pool);
  ceilings.dram_read = ReadBytesPerSecond(pool, loops, buffer, buffer.share());
  // Half of it: the other half may be a neighbour's.
  const int64_t cached = ceilings.l3_bytes / 2 / threads /
                         PeakLoops::kReadBytes * PeakLoops::kReadBytes;
  ceilings.l3_read =
      ReadBytesPerSecond(pool, loops, buffer, std::min(cached, buffer.share()));
  return ceilings;
}

std::string ToText(const Ceilings& ceilings) {
  return absl::StrFormat(
      "%d threads: fp32 %.0f, bf16 %.0f, int16 %.0f, int8 %.0f G operations/s; "
      "DRAM %.1f, L3 %.1f GB/s",
      ceilings.threads, ceilings.fp32 / 1e9, ceilings.bf16 / 1e9,
      ceilings.int16 / 1e9, ceilings.int8 / 1e9, ceilings.dram_read / 1e9,
      ceilings.l3_read / 1e9);
}

}  // namespace lockstep::bench
