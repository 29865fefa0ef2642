// Speed of the kernels on this machine, with the shapes of Qwen3-0.6B and of
// SmolLM2-135M.
//
//   bazel run //bench:kernels_bench -- --benchmark_filter=Gemm
//
// LOCKSTEP_CPU_ISA and LOCKSTEP_NUM_THREADS choose the instruction set ("auto")
// and the threads (2). `flops` counts a multiply-add as two, `bytes` the
// weights, or keys and values, that are read, both a second; `of_…` is their
// percentage of this machine's ceilings, measured at the start.
#include <benchmark/benchmark.h>
#include <glog/logging.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "bench/ceilings.h"
#include "kernels/attention/kv_store.h"
#include "kernels/attention/kv_type.h"
#include "kernels/attention/paged_kv.h"
#include "kernels/attention/token_batch.h"
#include "kernels/ops.h"
#include "kernels/threads/thread_pool.h"
#include "kernels/weights/arithmetic.h"
#include "kernels/weights/dtype.h"
#include "kernels/weights/packed_matrix.h"

namespace lockstep::kernels {
namespace {

std::string Environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : fallback;
}

int NumThreads() { return std::stoi(Environment("LOCKSTEP_NUM_THREADS", "2")); }

const bench::Ceilings& MachineCeilings() {
  static const bench::Ceilings kCeilings = bench::MeasureCeilings(NumThreads());
  return kCeilings;
}

// What one iteration computes, with an instruction of that ceiling, and reads.
void Count(benchmark::State& state, double operations,
           const std::string& instruction, double ceiling, double bytes) {
  const auto add = [&state](const std::string& name, double amount) {
    state.counters[name] = benchmark::Counter(
        amount, benchmark::Counter::kIsIterationInvariantRate);
  };
  const bench::Ceilings& ceilings = MachineCeilings();
  add("flops", operations);
  if (ceiling > 0) add("of_" + instruction, 100 * operations / ceiling);
  add("bytes", bytes);
  add("of_L3", 100 * bytes / ceilings.l3_read);
  add("of_DRAM", 100 * bytes / ceilings.dram_read);
}

void CountFp32(benchmark::State& state, double operations, double bytes) {
  Count(state, operations, "fp32", MachineCeilings().fp32, bytes);
}

// A product's: fast ones are two of 8-bit integers, with plain weights one of
// 16 bits.
void CountProduct(benchmark::State& state, DType type, Arithmetic arithmetic,
                  double operations, double bytes) {
  if (arithmetic == Arithmetic::kStrict) {
    CountFp32(state, operations, bytes);
  } else if (BlockValues(type) > 1) {
    Count(state, operations, "int8", MachineCeilings().int8 / 2, bytes);
  } else {
    Count(state, operations, "int16", MachineCeilings().int16, bytes);
  }
}

class Fixture : public benchmark::Fixture {
 public:
  Fixture()
      : pool_({.num_threads = NumThreads()}),
        ops_(*Ops::Create(Environment("LOCKSTEP_CPU_ISA", "auto"), &pool_)) {}

 protected:
  static std::vector<float> Uniform(size_t count) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> values(count);
    for (float& value : values) value = uniform(random);
    return values;
  }

  // Weights all of whose bytes are the same: fp16 factors are about 2^-8.
  PackedMatrix Weights(DType type, Arithmetic arithmetic, int rows, int cols) {
    std::vector<uint8_t> bytes(rows * RowBytes(type, cols), 0x1c);
    PackedMatrix matrix(cols, cols, arithmetic);
    matrix.AddRows(type, rows, bytes.data(), RowBytes(type, cols), 0,
                   {.pool = &pool_});
    return matrix;
  }

  ThreadPool pool_;
  Ops ops_;
};

// One product; args: type, arithmetic, output columns, K, rows of X.
BENCHMARK_DEFINE_F(Fixture, Gemm)(benchmark::State& state) {
  const auto type = static_cast<DType>(state.range(0));
  const auto arithmetic = static_cast<Arithmetic>(state.range(1));
  const int out = state.range(2), cols = state.range(3), rows = state.range(4);
  const PackedMatrix w = Weights(type, arithmetic, out, cols);
  const std::vector<float> x = Uniform(rows * cols);
  std::vector<float> y(rows * out);
  for (auto _ : state) {
    ops_.Gemm(w, x.data(), cols, rows, y.data(), out);
    benchmark::ClobberMemory();
  }
  state.SetLabel(std::string(DTypeName(type)) + ", " +
                 ArithmeticName(arithmetic));
  CountProduct(state, type, arithmetic, 2.0 * out * cols * rows, w.bytes());
}

void GemmShapes(benchmark::internal::Benchmark* bench) {
  constexpr Arithmetic kBoth[] = {Arithmetic::kFast, Arithmetic::kStrict};
  const auto add = [bench](DType type, Arithmetic arithmetic, int out, int cols,
                           int rows) {
    bench->Args({static_cast<int>(type), static_cast<int>(arithmetic), out,
                 cols, rows});
  };
  for (DType type : {DType::kQ8_0, DType::kQ4_0, DType::kQ4_1, DType::kQ4_K,
                     DType::kQ5_K, DType::kQ6_K, DType::kBF16, DType::kF32}) {
    for (Arithmetic arithmetic : kBoth) {
      for (int rows : {1, 2, 4, 8, 16, 32, 128, 512}) {
        add(type, arithmetic, 3072, 1024, rows);
      }
    }
  }
  for (int rows : {1, 512}) {
    for (auto [out, cols] :
         {std::pair{960, 576}, {576, 576}, {3072, 576}, {576, 1536}}) {
      for (Arithmetic arithmetic : kBoth) {
        add(DType::kQ4_1, arithmetic, out, cols, rows);
      }
    }
  }
}
BENCHMARK_REGISTER_F(Fixture, Gemm)
    ->Apply(GemmShapes)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// All products of one step of SmolLM2-135M in Q4_1, head in Q8_0; args:
// arithmetic, tokens.
BENCHMARK_DEFINE_F(Fixture, SmolLm2Gemms)(benchmark::State& state) {
  constexpr int kLayers = 30, kHidden = 576, kIntermediate = 1536;
  const auto arithmetic = static_cast<Arithmetic>(state.range(0));
  const int rows = state.range(1);
  std::vector<PackedMatrix> weights;
  const auto add = [&](int out, int cols) {
    weights.push_back(Weights(DType::kQ4_1, arithmetic, out, cols));
  };
  for (int layer = 0; layer < kLayers; ++layer) {
    add(960, kHidden);
    add(kHidden, kHidden);
    add(2 * kIntermediate, kHidden);
    add(kHidden, kIntermediate);
  }
  const PackedMatrix head = Weights(DType::kQ8_0, arithmetic, 49152, kHidden);
  const std::vector<float> x = Uniform(rows * kIntermediate);
  std::vector<float> y(rows * 2 * kIntermediate), logits(head.rows());
  double flops = 2.0 * head.rows() * head.cols(), bytes = head.bytes();
  for (const PackedMatrix& w : weights) {
    flops += 2.0 * rows * w.rows() * w.cols();
    bytes += w.bytes();
  }
  for (auto _ : state) {
    for (const PackedMatrix& w : weights) {
      ops_.Gemm(w, x.data(), kIntermediate, rows, y.data(), w.rows());
    }
    ops_.Gemm(head, x.data(), kIntermediate, 1, logits.data(), head.rows());
    benchmark::ClobberMemory();
  }
  state.SetLabel(ArithmeticName(arithmetic));
  CountProduct(state, DType::kQ4_1, arithmetic, flops, bytes);
}
BENCHMARK_REGISTER_F(Fixture, SmolLm2Gemms)
    ->ArgsProduct({{static_cast<int>(Arithmetic::kFast),
                    static_cast<int>(Arithmetic::kStrict)},
                   {1, 8, 32, 512}})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

// Keys and values of a model's layers, so many (at most 30) that they fill
// `bytes`, as far as that goes.
class KvLayers {
 public:
  KvLayers(KvType type, int pages, int page_size, int kv_heads, int head_dim,
           size_t bytes) {
    const size_t elements = size_t{1} * pages * page_size * kv_heads * head_dim;
    const size_t layer_bytes = 2 * elements * KvElementBytes(type);
    const size_t count = std::clamp<size_t>(bytes / layer_bytes, 1, size_t{30});
    scales_.assign(elements / head_dim, 0x1p-7f);
    bytes_ = count * layer_bytes;
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    CHECK(memory_ != MAP_FAILED);
    madvise(memory_, bytes_, MADV_HUGEPAGE);
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> x(4096);
    for (float& value : x) value = uniform(random);
    float scale;
    char* data = static_cast<char*>(memory_);
    for (size_t i = 0; i < 2 * count * elements; i += x.size()) {
      EncodeKv(type, x.data(), std::min(x.size(), 2 * count * elements - i),
               data + i * KvElementBytes(type), 1, &scale);
    }
    for (size_t i = 0; i < count; ++i, data += layer_bytes) {
      layers_.push_back({type, data, data + layer_bytes / 2, scales_.data(),
                         scales_.data(), kv_heads, page_size, head_dim});
    }
  }

  ~KvLayers() { munmap(memory_, bytes_); }
  KvLayers(const KvLayers&) = delete;
  KvLayers& operator=(const KvLayers&) = delete;

  const std::vector<PagedKv>& layers() const { return layers_; }

 private:
  void* memory_;
  size_t bytes_;
  std::vector<float> scales_;
  std::vector<PagedKv> layers_;
};

// 9 heads over 3 key-value heads of 64, layer after layer; args: type of the
// keys and values, sequences, context, new tokens of each. `bytes` counts each
// key and value once.
BENCHMARK_DEFINE_F(Fixture, Attention)(benchmark::State& state) {
  constexpr int kHeads = 9, kKvHeads = 3, kHeadDim = 64, kPageSize = 16;
  const auto type = static_cast<KvType>(state.range(0));
  const int sequences = state.range(1), context = state.range(2),
            tokens = state.range(3);
  const int pages = (context + kPageSize - 1) / kPageSize;
  const KvLayers kv(type, sequences * pages, kPageSize, kKvHeads, kHeadDim,
                    size_t{512} << 20);
  std::vector<int32_t> positions, sequence_of;
  std::vector<std::vector<int32_t>> tables(sequences);
  std::vector<const int32_t*> pointers;
  double visited = 0;
  for (int s = 0; s < sequences; ++s) {
    for (int p = 0; p < pages; ++p) tables[s].push_back(p * sequences + s);
    pointers.push_back(tables[s].data());
    for (int p = context - tokens; p < context; ++p) {
      positions.push_back(p);
      sequence_of.push_back(s);
      visited += p + 1;
    }
  }
  const TokenBatch batch = {sequences * tokens, positions.data(),
                            sequence_of.data(), pointers.data()};
  const int row = kHeads * kHeadDim;
  const std::vector<float> q = Uniform(positions.size() * row);
  std::vector<float> out(q.size());
  const std::vector<int32_t> kv_head_of = {0, 0, 0, 1, 1, 1, 2, 2, 2};
  size_t layer = 0;
  for (auto _ : state) {
    ops_.Attention(q.data(), row, kHeads, kv_head_of.data(), {.scale = 0.125f},
                   batch, kv.layers()[layer], out.data(), row);
    benchmark::ClobberMemory();
    layer = (layer + 1) % kv.layers().size();
  }
  state.SetLabel(KvTypeName(type));
  CountFp32(
      state, 4.0 * visited * row,
      2.0 * sequences * context * kKvHeads * kHeadDim * KvElementBytes(type));
}

void AttentionShapes(benchmark::internal::Benchmark* bench) {
  for (KvType type : kKvTypes) {
    const int t = static_cast<int>(type);
    for (int context : {192, 1024, 4096, 16384}) {
      bench->Args({t, 1, context, 1});
    }
    bench->Args({t, 32, 192, 1})->Args({t, 32, 1024, 1});
    for (int context : {512, 2048, 8192}) bench->Args({t, 1, context, 512});
  }
}
BENCHMARK_REGISTER_F(Fixture, Attention)
    ->Apply(AttentionShapes)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// Row-wise work; args: rows.
BENCHMARK_DEFINE_F(Fixture, RmsNorm)(benchmark::State& state) {
  const int rows = state.range(0), dim = 576;
  const std::vector<float> x = Uniform(rows * dim), weight = Uniform(dim);
  std::vector<float> y(x.size());
  for (auto _ : state) {
    ops_.RmsNorm(x.data(), dim, rows, dim, weight.data(), 1e-5f, y.data(), dim);
    benchmark::ClobberMemory();
  }
}
BENCHMARK_REGISTER_F(Fixture, RmsNorm)
    ->Arg(1)
    ->Arg(512)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

BENCHMARK_DEFINE_F(Fixture, GatedMul)(benchmark::State& state) {
  const int rows = state.range(0), dim = 1536;
  const std::vector<float> x = Uniform(rows * 2 * dim);
  std::vector<float> y(rows * dim);
  for (auto _ : state) {
    ops_.GatedMul(x.data(), Gate::kSilu, 2 * dim, rows, dim, y.data(), dim);
    benchmark::ClobberMemory();
  }
}
BENCHMARK_REGISTER_F(Fixture, GatedMul)
    ->Arg(1)
    ->Arg(512)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// What a meeting of the workers costs.
BENCHMARK_DEFINE_F(Fixture, ThreadPoolRun)(benchmark::State& state) {
  for (auto _ : state) {
    pool_.Run([](int) {});
  }
}
BENCHMARK_REGISTER_F(Fixture, ThreadPoolRun)->UseRealTime();

}  // namespace
}  // namespace lockstep::kernels

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  const auto& ceilings = lockstep::kernels::MachineCeilings();
  benchmark::AddCustomContext("ceilings", lockstep::bench::ToText(ceilings));
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
}
