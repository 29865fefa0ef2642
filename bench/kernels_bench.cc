// Speed of the kernels on this machine, with the shapes of SmolLM2-135M.
//
//   bazel run //bench:kernels_bench -- --benchmark_filter=Gemm
//
// LOCKSTEP_CPU_ISA and LOCKSTEP_NUM_THREADS choose the instruction set ("auto")
// and the threads (2). `flops` counts a multiply-add as two; `bytes_per_second`
// the weights, or keys and values, that are read.
#include <benchmark/benchmark.h>
#include <glog/logging.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/kv_store.h"
#include "kernels/kv_type.h"
#include "kernels/ops.h"
#include "kernels/packed_matrix.h"
#include "kernels/paged_kv.h"
#include "kernels/thread_pool.h"
#include "kernels/token_batch.h"

namespace lockstep::kernels {
namespace {

std::string Environment(const char* name, const char* fallback) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : fallback;
}

class Fixture : public benchmark::Fixture {
 public:
  Fixture()
      : pool_({.num_threads =
                   std::stoi(Environment("LOCKSTEP_NUM_THREADS", "2"))}),
        ops_(*Ops::Create(Environment("LOCKSTEP_CPU_ISA", "auto"), &pool_)) {}

 protected:
  static std::vector<float> Uniform(size_t count) {
    std::mt19937 random(1);
    std::uniform_real_distribution<float> uniform(-1, 1);
    std::vector<float> values(count);
    for (float& value : values) value = uniform(random);
    return values;
  }

  // Random weights whose factors are all 2^-8.
  static PackedMatrix Weights(DType type, int rows, int cols) {
    std::vector<uint8_t> bytes(rows * RowBytes(type, cols), 0x1c);
    PackedMatrix matrix(cols, cols);
    matrix.AddRows(type, rows, bytes.data(), RowBytes(type, cols), 0);
    return matrix;
  }

  ThreadPool pool_;
  Ops ops_;
};

// One product; args: type, output columns, K, rows of X.
BENCHMARK_DEFINE_F(Fixture, Gemm)(benchmark::State& state) {
  const auto type = static_cast<DType>(state.range(0));
  const int out = state.range(1), cols = state.range(2), rows = state.range(3);
  const PackedMatrix w = Weights(type, out, cols);
  const std::vector<float> x = Uniform(rows * cols);
  std::vector<float> y(rows * out);
  for (auto _ : state) {
    ops_.Gemm(w, x.data(), cols, rows, y.data(), out);
    benchmark::ClobberMemory();
  }
  state.SetLabel(DTypeName(type));
  state.counters["flops"] = benchmark::Counter(
      2.0 * out * cols * rows, benchmark::Counter::kIsIterationInvariantRate);
  state.SetBytesProcessed(state.iterations() * w.bytes());
}

void GemmShapes(benchmark::internal::Benchmark* bench) {
  for (DType type : {DType::kF32, DType::kBF16, DType::kQ8_0, DType::kQ4_1,
                     DType::kQ4_K, DType::kQ5_K, DType::kQ6_K}) {
    const int cols = BlockValues(type) == 256 ? 512 : 576;
    for (int rows : {1, 2, 4, 8, 16, 32, 128, 512}) {
      bench->Args({static_cast<int>(type), 3072, cols, rows});
    }
  }
  for (int rows : {1, 512}) {
    for (auto [out, cols] : {std::pair{960, 576}, {576, 576}, {576, 1536}}) {
      bench->Args({static_cast<int>(DType::kQ4_1), out, cols, rows});
    }
  }
}
BENCHMARK_REGISTER_F(Fixture, Gemm)
    ->Apply(GemmShapes)
    ->UseRealTime()
    ->Unit(benchmark::kMicrosecond);

// All products of one step of SmolLM2-135M in Q4_1, head in Q8_0; args: tokens.
BENCHMARK_DEFINE_F(Fixture, SmolLm2Gemms)(benchmark::State& state) {
  constexpr int kLayers = 30, kHidden = 576, kIntermediate = 1536;
  const int rows = state.range(0);
  std::vector<PackedMatrix> weights;
  for (int layer = 0; layer < kLayers; ++layer) {
    weights.push_back(Weights(DType::kQ4_1, 960, kHidden));
    weights.push_back(Weights(DType::kQ4_1, kHidden, kHidden));
    weights.push_back(Weights(DType::kQ4_1, 2 * kIntermediate, kHidden));
    weights.push_back(Weights(DType::kQ4_1, kHidden, kIntermediate));
  }
  const PackedMatrix head = Weights(DType::kQ8_0, 49152, kHidden);
  const std::vector<float> x = Uniform(rows * kIntermediate);
  std::vector<float> y(rows * 2 * kIntermediate), logits(head.rows());
  double flops = 0;
  for (const PackedMatrix& w : weights) flops += 2.0 * w.rows() * w.cols();
  for (auto _ : state) {
    for (const PackedMatrix& w : weights) {
      ops_.Gemm(w, x.data(), kIntermediate, rows, y.data(), w.rows());
    }
    ops_.Gemm(head, x.data(), kIntermediate, 1, logits.data(), head.rows());
    benchmark::ClobberMemory();
  }
  state.counters["flops"] =
      benchmark::Counter(flops * rows + 2.0 * head.rows() * head.cols(),
                         benchmark::Counter::kIsIterationInvariantRate);
}
BENCHMARK_REGISTER_F(Fixture, SmolLm2Gemms)
    ->Arg(1)
    ->Arg(8)
    ->Arg(512)
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
// keys and values, sequences, context, new tokens of each. `bytes_per_second`
// counts each key and value once.
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
    ops_.Attention(q.data(), row, kHeads, kv_head_of.data(), 0.125f, batch,
                   kv.layers()[layer], out.data(), row);
    benchmark::ClobberMemory();
    layer = (layer + 1) % kv.layers().size();
  }
  state.SetLabel(KvTypeName(type));
  state.counters["flops"] = benchmark::Counter(
      4.0 * visited * row, benchmark::Counter::kIsIterationInvariantRate);
  state.SetBytesProcessed(state.iterations() * 2 * sequences * context *
                          kKvHeads * kHeadDim * KvElementBytes(type));
}

void AttentionShapes(benchmark::internal::Benchmark* bench) {
  for (KvType type : {KvType::kF32, KvType::kBF16, KvType::kInt8}) {
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

BENCHMARK_DEFINE_F(Fixture, SiluMul)(benchmark::State& state) {
  const int rows = state.range(0), dim = 1536;
  const std::vector<float> x = Uniform(rows * 2 * dim);
  std::vector<float> y(rows * dim);
  for (auto _ : state) {
    ops_.SiluMul(x.data(), 2 * dim, rows, dim, y.data(), dim);
    benchmark::ClobberMemory();
  }
}
BENCHMARK_REGISTER_F(Fixture, SiluMul)
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

BENCHMARK_MAIN();
