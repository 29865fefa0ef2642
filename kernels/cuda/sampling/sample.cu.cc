#include "kernels/cuda/sampling/sample.h"

#include <cstddef>

#include "kernels/cuda/argmax.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/sampling/block_join.h"
#include "kernels/cuda/sampling/logit_order.h"
#include "kernels/cuda/sampling/probability_mass.h"

namespace lockstep::cuda {
namespace {

// The best ids are listed where they are no more than this.
constexpr int kMostListed = 1024;

// A top-p is looked for among about so many of the best, then among all.
constexpr int kLikelyTopP = 256;

// Bits of a key that one pass over the candidates decides.
constexpr int kDigitBits = 2;
constexpr int kDigits = 1 << kDigitBits;

// What of a weight is added up.
struct OneEach {
  using Sum = uint32_t;
  __device__ Sum operator()(float weight) const { return weight > 0 ? 1 : 0; }
};
struct Mass {
  using Sum = ProbabilityMass;
  __device__ Sum operator()(float weight) const { return MassOf(weight); }
};

struct Shared {
  alignas(16) unsigned char joins[JoinScratch::kBytes];
  LogitKey best_of_thread[kRowThreads];
  LogitKey bound;
  uint32_t found;
  RankedLogit listed[kMostListed];
};

// Some of a row in order of id, or all of it.
struct Ids {
  const RankedLogit* listed;  // or null
  const float* logits;
  int count;

  __device__ RankedLogit operator[](int i) const {
    if (listed != nullptr) return listed[i];
    return {KeyOf(logits[i]), static_cast<uint32_t>(i)};
  }
};

// The ids that may be drawn, as all threads of the block know them.
struct Candidates {
  Ids among;
  float max;
  float scale;      // 1 / temperature
  LogitKey lowest;  // no candidate's is lower
  RankedLogit worst;
  float least_weight;

  // 0 of all others.
  __device__ float Weight(RankedLogit id) const {
    if (IsBetter(worst, id)) return 0;
    const float weight = ExpWeight(LogitOf(id.key), max, scale);
    return weight >= least_weight ? weight : 0;
  }
};

// Of a warp, whose ids are `begin` + lane, … below `end`: the place of the
// first at which the sum of amounts, `before` and its own, exceeds `target`.
// REQUIRES: there is one.
template <typename Sum, typename AmountAt>
__device__ int PlaceInWarp(int begin, int end, Sum before, Sum target,
                           const AmountAt& amount_at) {
  const int lane = threadIdx.x % kWarpLanes;
  for (int first = begin; first < end; first += kWarpLanes) {
    Sum running = first + lane < end ? amount_at(first + lane) : Sum{0};
    for (int distance = 1; distance < kWarpLanes; distance *= 2) {
      const Sum other = FromLane(running, lane - distance);
      if (lane >= distance) running += other;
    }
    const Sum total = FromLane(running, kWarpLanes - 1);
    if (before + total > target) {
      const uint32_t reaches = before + running > target ? lane : kWarpLanes;
      const auto lower = [](uint32_t a, uint32_t b) { return a < b ? a : b; };
      return first + static_cast<int>(WarpJoin(reaches, lower));
    }
    before += total;
  }
  return end - 1;
}

// The part of `count` that a warp visits, in order.
struct Part {
  int begin, end;
};
__device__ Part PartOfWarp(int count) {
  const int warp = threadIdx.x / kWarpLanes;
  const int each = (count + kRowThreads - 1) / kRowThreads * kWarpLanes;
  const int begin = warp * each < count ? warp * each : count;
  return {begin, count - begin < each ? count : begin + each};
}

// The first of `ids` at which the sum of amounts exceeds target_of(all of it).
template <typename Sum, typename AmountOf, typename TargetOf>
__device__ uint32_t FirstBeyond(const Ids& ids, const AmountOf& amount_of,
                                const TargetOf& target_of, JoinScratch* joins,
                                uint32_t* found) {
  const int warp = threadIdx.x / kWarpLanes, lane = threadIdx.x % kWarpLanes;
  const Part part = PartOfWarp(ids.count);
  const auto amount_at = [&](int i) -> Sum { return amount_of(ids[i]); };
  Sum own = 0;
  for (int i = part.begin + lane; i < part.end; i += kWarpLanes) {
    own += amount_at(i);
  }
  own = WarpJoin(own, Add());
  Sum* const of_warp = joins->Next<Sum>();
  if (lane == 0) of_warp[warp] = own;
  __syncthreads();
  Sum before = 0, all = 0;
  for (int i = 0; i < kRowWarps; ++i) {
    if (i == warp) before = all;
    all += of_warp[i];
  }
  const Sum target = target_of(all);
  if (before <= target && target < before + own) {
    const int place =
        PlaceInWarp<Sum>(part.begin, part.end, before, target, amount_at);
    if (lane == 0) *found = ids[place].id;
  }
  __syncthreads();
  return *found;
}

template <typename Amount>
__device__ typename Amount::Sum Total(const Candidates& candidates,
                                      JoinScratch* joins) {
  typename Amount::Sum sum = 0;
  for (int i = threadIdx.x; i < candidates.among.count; i += kRowThreads) {
    sum += Amount()(candidates.Weight(candidates.among[i]));
  }
  return BlockJoin(sum, Add(), joins);
}

// REQUIRES: not narrowed yet.
__device__ uint32_t NumOf(const Candidates& candidates, JoinScratch* joins) {
  return candidates.among.listed != nullptr ? candidates.among.count
                                            : Total<OneEach>(candidates, joins);
}

// Narrows them to the fewest of the best whose amounts sum to `target`: finds
// the key of the last, digit by digit, then the id among those of that key.
// REQUIRES: 0 < target <= the sum of all; `best` is the best one's key.
template <typename Amount>
__device__ void KeepUpTo(typename Amount::Sum target, LogitKey best,
                         Candidates* candidates, JoinScratch* joins,
                         uint32_t* found) {
  using Sum = typename Amount::Sum;
  const Candidates& all = *candidates;
  int shift = 32 - kDigitBits;
  while (shift > 0 && (all.lowest ^ best) >> shift == 0) shift -= kDigitBits;
  uint64_t prefix = uint64_t{best} >> (shift + kDigitBits);
  Sum better = 0;  // of those with a larger prefix
  for (; shift >= 0; shift -= kDigitBits) {
    Several<Sum, kDigits - 1> sums = {};  // of the digits, the largest first
    for (int i = threadIdx.x; i < all.among.count; i += kRowThreads) {
      const RankedLogit id = all.among[i];
      if (uint64_t{id.key} >> (shift + kDigitBits) != prefix) continue;
      const uint32_t behind = kDigits - 1 - (id.key >> shift) % kDigits;
      const Sum amount = Amount()(all.Weight(id));
#pragma unroll
      for (int j = 0; j < kDigits - 1; ++j) {
        if (behind == j) sums.of[j] += amount;
      }
    }
    sums = BlockJoin(sums, Add(), joins);
    int digit = kDigits - 1;
#pragma unroll
    for (int j = 0; j < kDigits - 1; ++j) {
      if (digit != kDigits - 1 - j || better + sums.of[j] >= target) continue;
      better += sums.of[j];
      --digit;
    }
    prefix = prefix << kDigitBits | digit;
  }
  const auto key = static_cast<LogitKey>(prefix);
  const auto amount_of = [&](RankedLogit id) -> Sum {
    return id.key == key ? Amount()(all.Weight(id)) : Sum{0};
  };
  const auto target_of = [&](Sum) -> Sum { return target - better - 1; };
  const uint32_t last =
      FirstBeyond<Sum>(all.among, amount_of, target_of, joins, found);
  candidates->worst = {key, last};
  candidates->lowest = key;
}

// Of the threads' keys the `nth` largest.
__device__ LogitKey NthLargest(int nth, Shared* shared) {
  const LogitKey own = shared->best_of_thread[threadIdx.x];
  int better = 0;
  for (int i = 0; i < kRowThreads; ++i) {
    const LogitKey other = shared->best_of_thread[i];
    better += other > own || (other == own && i < threadIdx.x) ? 1 : 0;
  }
  if (better == nth - 1) shared->bound = own;
  __syncthreads();
  return shared->bound;
}

// Lists the candidates of a row, in order, that are no lower than
// candidates->lowest, if they are not too many.
__device__ bool List(RankedLogit* listed, Candidates* candidates,
                     JoinScratch* joins) {
  const int warp = threadIdx.x / kWarpLanes, lane = threadIdx.x % kWarpLanes;
  const Ids row = candidates->among;
  const Part part = PartOfWarp(row.count);
  const auto is_listed = [&](int i) -> uint32_t {
    if (i >= part.end || row[i].key < candidates->lowest) return 0;
    return OneEach()(candidates->Weight(row[i]));
  };
  uint32_t own = 0;
  for (int i = part.begin + lane; i < part.end; i += kWarpLanes) {
    own += is_listed(i);
  }
  own = WarpJoin(own, Add());
  auto* const of_warp = joins->Next<uint32_t>();
  if (lane == 0) of_warp[warp] = own;
  __syncthreads();
  uint32_t before = 0, all = 0;
  for (int i = 0; i < kRowWarps; ++i) {
    if (i == warp) before = all;
    all += of_warp[i];
  }
  if (all > kMostListed) return false;
  for (int first = part.begin; first < part.end; first += kWarpLanes) {
    uint32_t places = is_listed(first + lane);
    const bool is_own = places != 0;
    for (int distance = 1; distance < kWarpLanes; distance *= 2) {
      const uint32_t other = FromLane(places, lane - distance);
      if (lane >= distance) places += other;
    }
    const uint32_t place = before + places - 1;
    if (is_own && place < kMostListed) listed[place] = row[first + lane];
    before += FromLane(places, kWarpLanes - 1);
  }
  __syncthreads();
  candidates->among = {listed, row.logits, static_cast<int>(all)};
  return true;
}

// A block a row.
__global__ void __launch_bounds__(kRowThreads, 1)
    SampleKernel(const float* all_logits, int64_t stride, int vocabulary,
                 const SampledRow* rows, uint32_t* tokens) {
  Shared& shared = *DynamicShared<Shared>();
  JoinScratch joins(shared.joins);
  const SampledRow row = rows[blockIdx.x];
  if (tokens[row.row] == kNoFiniteLogit) return;
  const Ids all = {nullptr, all_logits + row.row * stride, vocabulary};
  RankedLogit best = WorstOfAll();
  for (int i = threadIdx.x; i < all.count; i += kRowThreads) {
    best = TakeBetter()(best, all[i]);
  }
  shared.best_of_thread[threadIdx.x] = best.key;
  best = BlockJoin(best, TakeBetter(), &joins);
  if (row.temperature == 0) {
    if (threadIdx.x == 0) tokens[row.row] = best.id;
    return;
  }
  Candidates candidates = {.among = all,
                           .max = LogitOf(best.key),
                           .scale = __fdiv_rn(1.0f, row.temperature),
                           .lowest = kNoLogit,
                           .worst = WorstOfAll(),
                           .least_weight = 0};
  const bool has_top_k = row.top_k > 0 && row.top_k < vocabulary;
  Candidates likely = candidates;
  bool is_listed = false;
  if (has_top_k || row.top_p < 1) {
    const bool is_few = has_top_k && row.top_k <= kRowThreads;
    likely.lowest = NthLargest(is_few ? row.top_k : kLikelyTopP, &shared);
    is_listed = List(shared.listed, &likely, &joins);
    // As many as asked for are among them.
    if (is_few && is_listed) candidates = likely;
  }
  if (has_top_k && NumOf(candidates, &joins) > row.top_k) {
    KeepUpTo<OneEach>(row.top_k, best.key, &candidates, &joins, &shared.found);
    likely.worst = candidates.worst;
  }
  if (row.top_p < 1) {
    const ProbabilityMass share =
        ShareOf(Total<Mass>(candidates, &joins), row.top_p).up;
    const ProbabilityMass target = share > 0 ? share : 1;
    if (is_listed && Total<Mass>(likely, &joins) >= target) candidates = likely;
    KeepUpTo<Mass>(target, best.key, &candidates, &joins, &shared.found);
  }
  candidates.least_weight = row.min_p;
  const uint32_t token = FirstBeyond<ProbabilityMass>(
      candidates.among,
      [&](RankedLogit id) { return MassOf(candidates.Weight(id)); },
      [&](ProbabilityMass all) { return ShareOf(all, row.noise).down; }, &joins,
      &shared.found);
  if (threadIdx.x == 0) tokens[row.row] = token;
}

}  // namespace

CudaError SampleTokens(const float* logits, int64_t stride, int vocabulary,
                       const SampledRow* rows, int count, uint32_t* tokens,
                       Stream stream) {
  if (count == 0) return kCudaSuccess;
  return Launch(
      SampleKernel,
      {dim3{static_cast<unsigned>(count)}, dim3{kRowThreads}, sizeof(Shared)},
      stream, logits, stride, vocabulary, rows, tokens);
}

}  // namespace lockstep::cuda
