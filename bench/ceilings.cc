#include "bench/ceilings.h"

#include <absl/strings/str_format.h>
#include <glog/logging.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <fstream>

#include "bench/peak_loops.h"
#include "kernels/thread_pool.h"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPasses = 4;
constexpr double kPassSeconds = 0.015;
constexpr int64_t kFirstRounds = 20'000;
constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kUnknownL3Bytes = 32 * kMiB;
constexpr int64_t kLeastDramBytes = 256 * kMiB;
constexpr int64_t kMostDramBytes = 1024 * kMiB;
constexpr int64_t kHugePage = 2 * kMiB;

double SecondsOf(kernels::ThreadPool& pool,
                 absl::FunctionRef<void(int worker)> work) {
  const Clock::time_point begin = Clock::now();
  pool.Run(work);
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

double OperationsPerSecond(kernels::ThreadPool& pool, const PeakLoop& loop) {
  int64_t rounds = kFirstRounds;
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double seconds = SecondsOf(pool, [&](int) { loop.run(rounds); });
    const double rate = rounds * loop.operations / seconds;
    best = std::max(best, pool.size() * rate);
    rounds = std::max<int64_t>(1, kPassSeconds * rate / loop.operations);
  }
  return best;
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

// Of the first `share` bytes of each thread's part, read again and again.
double ReadBytesPerSecond(kernels::ThreadPool& pool, const PeakLoops& loops,
                          const Buffer& buffer, int64_t share) {
  double best = 0;
  for (const ReadLoop read : loops.reads) {
    int64_t times = 1;
    for (int pass = 0; pass < kPasses; ++pass) {
      const double seconds = SecondsOf(pool, [&](int worker) {
        for (int64_t i = 0; i < times; ++i) read(buffer.part(worker), share);
      });
      const double rate = times * share / seconds;
      best = std::max(best, pool.size() * rate);
      times = std::max<int64_t>(1, kPassSeconds * rate / share);
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
