// Every operation on every instruction set this processor has: the same bits as
// the reference on one thread, for awkward shapes, any cut into rows and any
// number of threads; and the reference is right, by double precision.
#include <absl/status/status.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/ops.h"

namespace lockstep::kernels {
namespace {

constexpr uint32_t kSeed = 20240517;

const DType kTypes[] = {DType::kF32,  DType::kF16,  DType::kBF16, DType::kQ8_0,
                        DType::kQ4_0, DType::kQ4_1, DType::kQ6_K};

// One instruction set on some threads, ready to run.
struct Backend {
  std::string name;
  std::unique_ptr<ThreadPool> pool;
  std::unique_ptr<Ops> ops;
};

Backend MakeBackend(const std::string& isa, int threads) {
  Backend backend;
  backend.name = isa + " on " + std::to_string(threads) + " threads";
  backend.pool = std::make_unique<ThreadPool>(
      ThreadPool::Options{.num_threads = threads, .oversubscribed = true});
  absl::StatusOr<Ops> ops = Ops::Create(isa, backend.pool.get());
  if (ops.ok()) backend.ops = std::make_unique<Ops>(*ops);
  return backend;
}

class OpsConformanceTest : public testing::Test {
 protected:
  OpsConformanceTest()
      : random_(kSeed), reference_(MakeBackend("reference", 1)) {
    RecordProperty("seed", kSeed);
    for (const char* isa : {"reference", "avx2", "avx512"}) {
      for (int threads : {1, 2, 3}) {
        Backend backend = MakeBackend(isa, threads);
        if (backend.ops != nullptr) backends_.push_back(std::move(backend));
      }
    }
  }

  std::vector<float> Normal(size_t count, float scale = 1) {
    std::normal_distribution<float> normal(0, scale);
    std::vector<float> values(count);
    for (float& value : values) value = normal(random_);
    return values;
  }

  // Runs `compute(ops, out)` on every back end; `out` starts as NaN, and every
  // byte of it must be the reference's.
  template <typename Compute>
  std::vector<float> ExpectSameBits(size_t out_size, const std::string& what,
                                    const Compute& compute) {
    const std::vector<float> untouched(out_size, std::nanf(""));
    std::vector<float> expected = untouched;
    compute(*reference_.ops, expected.data());
    for (const Backend& backend : backends_) {
      std::vector<float> out = untouched;
      compute(*backend.ops, out.data());
      EXPECT_EQ(FirstDifference(expected, out), -1)
          << what << ": " << backend.name;
    }
    return expected;
  }

  static int FirstDifference(const std::vector<float>& a,
                             const std::vector<float>& b) {
    for (size_t i = 0; i < a.size(); ++i) {
      if (std::memcmp(&a[i], &b[i], sizeof(float)) != 0) return i;
    }
    return -1;
  }

  // A weight row as stored, every bit pattern of the integers possible and the
  // factors moderate.
  std::vector<uint8_t> RandomRows(DType type, int rows, int cols) {
    std::vector<uint8_t> bytes(rows * RowBytes(type, cols));
    for (uint8_t& byte : bytes) byte = random_() & 255;
    const auto set_half = [&](size_t offset, bool sign) {
      // 2^-9 … 2^-6, any mantissa.
      const uint16_t half = (random_() & 0x3ff) | (6 + random_() % 3) << 10 |
                            (sign ? (random_() & 1) << 15 : 0);
      std::memcpy(&bytes[offset], &half, sizeof(half));
    };
    const int block = BlockBytes(type);
    for (size_t at = 0; at < bytes.size(); at += block) {
      switch (type) {
        case DType::kF32: {
          const float value = Normal(1)[0];
          std::memcpy(&bytes[at], &value, sizeof(value));
          break;
        }
        case DType::kF16:
          set_half(at, true);
          break;
        case DType::kBF16:
          bytes[at + 1] = (bytes[at + 1] & 0x80) | 0x3e;
          break;
        case DType::kQ6_K:
          set_half(at + 208, true);
          break;
        case DType::kQ4_1:
          set_half(at + 2, true);
          set_half(at, true);
          break;
        default:
          set_half(at, true);
          break;
      }
    }
    return bytes;
  }

  std::mt19937 random_;
  Backend reference_;
  std::vector<Backend> backends_;
};

struct GemmShape {
  int out;     // output columns
  int blocks;  // K in blocks of the type (of 8 for plain types)
  int slices;
};

// Kinds of tail: part of a panel, odd panels, K of one block, slices that are
// no power of two, K beyond the cache block of 128.
const GemmShape kGemmShapes[] = {
    {1, 1, 1},  {15, 2, 2}, {16, 3, 3},   {17, 5, 5},
    {33, 6, 1}, {64, 8, 8}, {100, 14, 7}, {47, 15, 15},
};

int PlainOrBlock(DType type) {
  return BlockValues(type) == 1 ? 9 : BlockValues(type);
}

TEST_F(OpsConformanceTest, GemmGivesTheSameBitsEverywhere) {
  for (DType type : kTypes) {
    for (const GemmShape& shape : kGemmShapes) {
      const int cols = shape.blocks * PlainOrBlock(type);
      PackedMatrix w(cols, cols / shape.slices);
      const std::vector<uint8_t> rows = RandomRows(type, shape.out, cols);
      w.AddRows(type, shape.out, rows.data(), RowBytes(type, cols), 0);
      for (int m : {1, 2, 3, 4, 5, 6, 7, 12, 13, 31}) {
        const std::vector<float> x = Normal(m * (cols + 3));
        const int y_stride = shape.out + 5;
        ExpectSameBits(m * y_stride,
                       std::string(DTypeName(type)) + " out " +
                           std::to_string(shape.out) + " cols " +
                           std::to_string(cols) + " rows " + std::to_string(m),
                       [&](Ops& ops, float* y) {
                         ops.Gemm(w, x.data(), cols + 3, m, y, y_stride);
                       });
      }
    }
  }
}

TEST_F(OpsConformanceTest, GemmOfManyRowsIsThatOfEachRow) {
  for (DType type : kTypes) {
    const int cols = BlockValues(type) == 1 ? 300 : 512;
    const int out = 50;
    PackedMatrix w(cols, cols / 2);
    const std::vector<uint8_t> rows = RandomRows(type, out, cols);
    w.AddRows(type, out, rows.data(), RowBytes(type, cols), 0);
    constexpr int kRows = 257;  // more than two blocks of rows
    const std::vector<float> x = Normal(kRows * cols);
    for (const Backend& backend : backends_) {
      if (backend.name.find("reference") == 0) continue;
      std::vector<float> together(kRows * out), alone(kRows * out);
      backend.ops->Gemm(w, x.data(), cols, kRows, together.data(), out);
      for (int row = 0; row < kRows; ++row) {
        backend.ops->Gemm(w, &x[row * cols], cols, 1, &alone[row * out], out);
      }
      EXPECT_EQ(FirstDifference(together, alone), -1)
          << DTypeName(type) << ": " << backend.name;
    }
  }
}

TEST_F(OpsConformanceTest, GemmOfMixedTypesFillsEachColumn) {
  const int cols = 256;
  PackedMatrix w(cols, cols);
  std::vector<std::vector<uint8_t>> rows;
  int out = 0;
  for (DType type : kTypes) {
    const int count = 3 + 11 * rows.size();
    rows.push_back(RandomRows(type, count, cols));
    w.AddRows(type, count, rows.back().data(), RowBytes(type, cols), 0);
    out += count;
  }
  for (int m : {1, 9}) {
    const std::vector<float> x = Normal(m * cols);
    ExpectSameBits(m * out, "mixed", [&](Ops& ops, float* y) {
      ops.Gemm(w, x.data(), cols, m, y, out);
    });
  }
}

TEST_F(OpsConformanceTest, GemmIsRightByDoublePrecision) {
  for (DType type : kTypes) {
    const int cols = 512, out = 20, m = 3;
    const std::vector<uint8_t> rows = RandomRows(type, out, cols);
    PackedMatrix w(cols, cols / 2);
    w.AddRows(type, out, rows.data(), RowBytes(type, cols), 0);
    const std::vector<float> x = Normal(m * cols);
    std::vector<float> y(m * out), weights(cols);
    reference_.ops->Gemm(w, x.data(), cols, m, y.data(), out);
    for (int j = 0; j < out; ++j) {
      DecodeRow(type, &rows[j * RowBytes(type, cols)], cols, weights.data());
      for (int i = 0; i < m; ++i) {
        double sum = 0, absolute = 0;
        for (int k = 0; k < cols; ++k) {
          const double term = double{x[i * cols + k]} * weights[k];
          sum += term;
          absolute += std::abs(term);
        }
        // Each of cols additions rounds by at most half a unit of 2^-23.
        EXPECT_NEAR(y[i * out + j], sum, absolute * cols * 0x1p-24)
            << DTypeName(type);
      }
    }
  }
}

TEST_F(OpsConformanceTest, RmsNorm) {
  for (int dim : {1, 2, 3, 7, 15, 16, 17, 31, 33, 64, 100, 576}) {
    for (int rows : {1, 2, 37}) {
      const std::vector<float> x = Normal(rows * (dim + 1));
      const std::vector<float> weight = Normal(dim);
      const std::vector<float> y = ExpectSameBits(
          rows * dim, "dim " + std::to_string(dim), [&](Ops& ops, float* out) {
            ops.RmsNorm(x.data(), dim + 1, rows, dim, weight.data(), 1e-5f, out,
                        dim);
          });
      double squares = 0;
      for (int i = 0; i < dim; ++i) squares += double{x[i]} * x[i];
      for (int i = 0; i < dim; ++i) {
        const double expected =
            x[i] / std::sqrt(squares / dim + 1e-5) * weight[i];
        EXPECT_NEAR(y[i], expected, std::abs(expected) * 1e-6);
      }
    }
  }
}

TEST_F(OpsConformanceTest, SiluMul) {
  for (int dim : {1, 7, 15, 16, 17, 33, 100, 1536}) {
    const int rows = 5;
    std::vector<float> gate_up = Normal(rows * 2 * dim, 20);
    gate_up[0] = -1000;  // beyond the range of exp
    const std::vector<float> y = ExpectSameBits(
        rows * dim, "dim " + std::to_string(dim), [&](Ops& ops, float* out) {
          ops.SiluMul(gate_up.data(), 2 * dim, rows, dim, out, dim);
        });
    for (int i = 0; i < dim; ++i) {
      const double gate = gate_up[i];
      const double expected = gate / (1 + std::exp(-gate)) * gate_up[dim + i];
      EXPECT_NEAR(y[i], expected, std::abs(expected) * 1e-6 + 1e-30) << gate;
    }
  }
}

TEST_F(OpsConformanceTest, Add) {
  const int rows = 400, dim = 33;
  const std::vector<float> x = Normal(rows * dim), y = Normal(rows * dim);
  const std::vector<float> sum =
      ExpectSameBits(rows * dim, "add", [&](Ops& ops, float* out) {
        std::copy(x.begin(), x.end(), out);
        ops.Add(out, dim, y.data(), dim, rows, dim);
      });
  for (size_t i = 0; i < sum.size(); ++i) EXPECT_EQ(sum[i], x[i] + y[i]);
}

// Sequences whose tokens [begin, end) are in the batch; pages lie anywhere.
class Batch {
 public:
  struct Range {
    int begin;
    int end;
  };

  Batch(const std::vector<Range>& ranges, int page_size, std::mt19937& random) {
    for (const Range& range : ranges) {
      for (int position = range.begin; position < range.end; ++position) {
        sequence_of_.push_back(tables_.size());
        positions_.push_back(position);
      }
      tables_.emplace_back((range.end + page_size - 1) / page_size);
      num_pages_ += tables_.back().size();
    }
    std::vector<int32_t> pages(num_pages_);
    std::iota(pages.begin(), pages.end(), 0);
    std::shuffle(pages.begin(), pages.end(), random);
    for (auto& table : tables_) {
      for (int32_t& page : table) {
        page = pages.back();
        pages.pop_back();
      }
      pointers_.push_back(table.data());
    }
  }

  TokenBatch view() const {
    return {static_cast<int>(positions_.size()), positions_.data(),
            sequence_of_.data(), pointers_.data()};
  }
  int num_pages() const { return num_pages_; }
  int position(int token) const { return positions_[token]; }

 private:
  std::vector<int32_t> positions_, sequence_of_;
  std::vector<std::vector<int32_t>> tables_;
  std::vector<const int32_t*> pointers_;
  int num_pages_ = 0;
};

TEST_F(OpsConformanceTest, NormRope) {
  const Batch batch({{0, 3}, {70, 71}, {14, 40}}, 16, random_);
  const int tokens = batch.view().num_tokens;
  struct Case {
    int heads, head_dim, rotary_dim;
    RopeStyle style;
    bool norm;
  };
  for (const Case& c : {Case{1, 2, 2, RopeStyle::kHalves, false},
                        Case{3, 64, 64, RopeStyle::kHalves, true},
                        Case{3, 64, 64, RopeStyle::kNeighbours, false},
                        Case{2, 80, 20, RopeStyle::kHalves, true},
                        Case{2, 33, 32, RopeStyle::kNeighbours, true}}) {
    const int stride = c.heads * c.head_dim + 2, half = c.rotary_dim / 2;
    const std::vector<float> x = Normal(tokens * stride);
    const std::vector<float> weight = Normal(c.head_dim);
    std::vector<float> cos(80 * half), sin(80 * half);
    for (int p = 0; p < 80; ++p) {
      for (int i = 0; i < half; ++i) {
        const double angle = p * std::pow(10000, -double(i) / half);
        cos[p * half + i] = std::cos(angle);
        sin[p * half + i] = std::sin(angle);
      }
    }
    const std::vector<float> y =
        ExpectSameBits(tokens * stride, "rope", [&](Ops& ops, float* out) {
          std::copy(x.begin(), x.end(), out);
          ops.NormRope(out, stride, c.heads, c.head_dim,
                       c.norm ? weight.data() : nullptr, 1e-6f, c.style,
                       c.rotary_dim, cos.data(), sin.data(), batch.view());
        });
    if (c.norm) continue;
    // A rotation by the position's angle, pair by pair.
    const bool halves = c.style == RopeStyle::kHalves;
    for (int token = 0; token < tokens; ++token) {
      for (int i = 0; i < half; ++i) {
        const int a = token * stride + (halves ? i : 2 * i);
        const int b = a + (halves ? half : 1);
        const double angle =
            batch.position(token) * std::pow(10000, -double(i) / half);
        EXPECT_NEAR(y[a], x[a] * std::cos(angle) - x[b] * std::sin(angle),
                    2e-6);
        EXPECT_NEAR(y[b], x[b] * std::cos(angle) + x[a] * std::sin(angle),
                    2e-6);
      }
    }
  }
}

struct AttentionShape {
  int heads, kv_heads, head_dim, page_size;
  std::vector<Batch::Range> ranges;
};

class AttentionConformanceTest : public OpsConformanceTest {
 protected:
  // A cache with every position of the batch's sequences.
  struct Cache {
    Cache(const AttentionShape& shape, const Batch& batch)
        : keys(size_t{1} * batch.num_pages() * shape.kv_heads *
               shape.page_size * shape.head_dim),
          values(keys.size()),
          kv{keys.data(), values.data(), shape.kv_heads, shape.page_size,
             shape.head_dim} {}
    std::vector<float> keys, values;
    PagedKv kv;
  };

  static std::vector<int32_t> GroupedHeads(const AttentionShape& shape) {
    std::vector<int32_t> kv_head_of(shape.heads);
    for (int head = 0; head < shape.heads; ++head) {
      kv_head_of[head] = head * shape.kv_heads / shape.heads;
    }
    return kv_head_of;
  }

  static double ExactDifference(const AttentionShape& shape,
                                const TokenBatch& batch, const PagedKv& kv,
                                const std::vector<float>& q, float scale,
                                const std::vector<float>& out, int token,
                                int head) {
    const int dim = shape.head_dim;
    const size_t row = (size_t{1} * token * shape.heads + head) * dim;
    std::vector<double> sum(dim);
    double total = 0;
    for (int p = 0; p <= batch.positions[token]; ++p) {
      const size_t slot = kv.Offset(
          batch.page_tables[batch.sequence_of[token]][p / kv.page_size],
          head * shape.kv_heads / shape.heads, p % kv.page_size);
      double score = 0;
      for (int d = 0; d < dim; ++d)
        score += double{q[row + d]} * kv.keys[slot + d];
      const double weight = std::exp(score * scale);
      total += weight;
      for (int d = 0; d < dim; ++d) sum[d] += weight * kv.values[slot + d];
    }
    double worst = 0;
    for (int d = 0; d < dim; ++d) {
      worst = std::max(worst, std::abs(sum[d] / total - out[row + d]));
    }
    return worst;
  }
};

const std::vector<AttentionShape>& AttentionShapes() {
  static const auto* shapes = new std::vector<AttentionShape>{
      {1, 1, 8, 1, {{0, 1}}},
      {1, 1, 1, 4, {{0, 5}}},
      {3, 1, 64, 16, {{0, 130}, {63, 64}, {64, 65}, {200, 201}}},
      {9, 3, 64, 16, {{0, 33}, {127, 129}, {1, 2}}},
      {4, 2, 33, 16, {{0, 70}, {5, 6}}},
      {4, 4, 80, 8, {{60, 70}, {0, 17}}},
      {8, 1, 128, 32, {{0, 20}, {100, 140}}},
      {70, 1, 16, 2, {{0, 18}}},
      {2, 1, 512, 256, {{0, 3}, {300, 302}}},
  };
  return *shapes;
}

TEST_F(AttentionConformanceTest, SameBitsAndRight) {
  for (const AttentionShape& shape : AttentionShapes()) {
    const Batch batch(shape.ranges, shape.page_size, random_);
    Cache cache(shape, batch);
    // What no token of the batch may see is NaN.
    std::fill(cache.keys.begin(), cache.keys.end(), std::nanf(""));
    std::fill(cache.values.begin(), cache.values.end(), std::nanf(""));
    std::vector<Batch::Range> whole = shape.ranges;
    const TokenBatch view = batch.view();
    for (size_t s = 0; s < whole.size(); ++s) {
      for (int p = 0; p < whole[s].end; ++p) {
        for (int h = 0; h < shape.kv_heads; ++h) {
          const size_t slot = cache.kv.Offset(
              view.page_tables[s][p / shape.page_size], h, p % shape.page_size);
          const auto k = Normal(shape.head_dim), v = Normal(shape.head_dim);
          std::copy(k.begin(), k.end(), &cache.keys[slot]);
          std::copy(v.begin(), v.end(), &cache.values[slot]);
        }
      }
    }
    const int row = shape.heads * shape.head_dim;
    const std::vector<float> q = Normal(view.num_tokens * row, 2);
    const std::vector<int32_t> kv_head_of = GroupedHeads(shape);
    const float scale = 1 / std::sqrt(static_cast<float>(shape.head_dim));
    const std::vector<float> out = ExpectSameBits(
        view.num_tokens * row,
        "heads " + std::to_string(shape.heads) + " head_dim " +
            std::to_string(shape.head_dim),
        [&](Ops& ops, float* y) {
          ops.Attention(q.data(), row, shape.heads, kv_head_of.data(), scale,
                        view, cache.kv, y, row);
        });
    for (int token = 0; token < view.num_tokens; token += 3) {
      for (int head = 0; head < shape.heads; ++head) {
        EXPECT_LT(
            ExactDifference(shape, view, cache.kv, q, scale, out, token, head),
            2e-5);
      }
    }
  }
}

TEST_F(AttentionConformanceTest, DoesNotDependOnTheRestOfTheBatch) {
  const AttentionShape shape = {9, 3, 64, 16, {{0, 150}}};
  const Batch prompt(shape.ranges, shape.page_size, random_);
  Cache cache(shape, prompt);
  cache.keys = Normal(cache.keys.size());
  cache.values = Normal(cache.values.size());
  cache.kv.keys = cache.keys.data();
  cache.kv.values = cache.values.data();
  const int row = shape.heads * shape.head_dim;
  const TokenBatch view = prompt.view();
  const std::vector<float> q = Normal(view.num_tokens * row, 2);
  const std::vector<int32_t> kv_head_of = GroupedHeads(shape);
  for (const Backend& backend : backends_) {
    std::vector<float> together(view.num_tokens * row), alone(together.size());
    const auto attend = [&](const TokenBatch& batch, int token, float* out) {
      backend.ops->Attention(&q[token * row], row, shape.heads,
                             kv_head_of.data(), 0.125f, batch, cache.kv,
                             out + token * row, row);
    };
    attend(view, 0, together.data());
    for (int token = 0, chunk; token < view.num_tokens; token += chunk) {
      chunk = std::min(1 + token % 7, view.num_tokens - token);
      const TokenBatch part = {chunk, view.positions + token,
                               view.sequence_of + token, view.page_tables};
      attend(part, token, alone.data());
    }
    EXPECT_EQ(FirstDifference(together, alone), -1) << backend.name;
  }
}

TEST_F(AttentionConformanceTest, StoreKvWritesEachTokensSlotAndNoOther) {
  const AttentionShape shape = {4, 2, 24, 4, {{0, 9}, {3, 5}, {11, 12}}};
  const Batch batch(shape.ranges, shape.page_size, random_);
  const TokenBatch view = batch.view();
  const int row = shape.kv_heads * shape.head_dim;
  const std::vector<float> k = Normal(view.num_tokens * row);
  const std::vector<float> v = Normal(view.num_tokens * row);
  const std::vector<float> keys = ExpectSameBits(
      Cache(shape, batch).keys.size(), "keys", [&](Ops& ops, float* out) {
        Cache cache(shape, batch);
        cache.kv.keys = out;
        ops.StoreKv(k.data(), row, v.data(), row, view, cache.kv);
      });
  Cache cache(shape, batch);
  reference_.ops->StoreKv(k.data(), row, v.data(), row, view, cache.kv);
  for (int token = 0; token < view.num_tokens; ++token) {
    for (int head = 0; head < shape.kv_heads; ++head) {
      const int position = view.positions[token];
      const size_t slot = cache.kv.Offset(
          view.page_tables[view.sequence_of[token]][position / 4], head,
          position % 4);
      for (int d = 0; d < shape.head_dim; ++d) {
        const int source = token * row + head * shape.head_dim + d;
        EXPECT_EQ(keys[slot + d], k[source]);
        EXPECT_EQ(cache.values[slot + d], v[source]);
      }
    }
  }
  EXPECT_EQ(std::count_if(keys.begin(), keys.end(),
                          [](float x) { return !std::isnan(x); }),
            view.num_tokens * row);
}

TEST(OpsCreateTest, RefusesAnUnknownInstructionSetByFlagAndName) {
  ThreadPool pool({.num_threads = 1});
  const absl::StatusOr<Ops> ops = Ops::Create("sse9", &pool);
  EXPECT_EQ(ops.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(ops.status().message()),
              testing::HasSubstr("--cpu_isa=\"sse9\" is none of"));
}

TEST(OpsCreateTest, AutoPicksOneThatCanBeNamed) {
  ThreadPool pool({.num_threads = 1});
  absl::StatusOr<Ops> automatic = Ops::Create("auto", &pool);
  ASSERT_TRUE(automatic.ok());
  EXPECT_TRUE(Ops::Create(automatic->isa(), &pool).ok());
}

}  // namespace
}  // namespace lockstep::kernels
