#include "kernels/cuda/sampling/logprobs.h"

#include "kernels/cuda/argmax.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/sampling/block_join.h"
#include "kernels/cuda/sampling/logit_order.h"
#include "kernels/cuda/sampling/probability_mass.h"

namespace lockstep::cuda {
namespace {

__device__ RankedLogit Ranked(const float* logits, uint32_t id) {
  return {KeyOf(logits[id]), id};
}

// Of the ids that are worse than `than`.
__device__ RankedLogit BestBelow(const float* logits, int vocabulary,
                                 RankedLogit than, JoinScratch* joins) {
  RankedLogit best = WorstOfAll();
  for (int id = threadIdx.x; id < vocabulary; id += kRowThreads) {
    const RankedLogit ranked = Ranked(logits, id);
    if (IsBetter(than, ranked)) best = TakeBetter()(best, ranked);
  }
  return BlockJoin(best, TakeBetter(), joins);
}

// A block a row.
__global__ void __launch_bounds__(kRowThreads)
    ScoreKernel(const float* all_logits, int64_t stride, int vocabulary,
                const ScoredRow* rows, const uint32_t* tokens,
                RowLogprobs* out) {
  JoinScratch joins(DynamicShared<unsigned char>());
  const ScoredRow row = rows[blockIdx.x];
  const float* logits = all_logits + row.row * stride;
  const uint32_t id = row.token == kChosenToken ? tokens[row.row] : row.token;
  if (id == kNoFiniteLogit) return;
  const RankedLogit token = Ranked(logits, id);
  RankedLogit last = BestBelow(logits, vocabulary, {0xffffffff, 0}, &joins);
  const float max = LogitOf(last.key);
  ProbabilityMass sum = 0;
  uint32_t rank = 0;
  for (int id = threadIdx.x; id < vocabulary; id += kRowThreads) {
    const RankedLogit ranked = Ranked(logits, id);
    sum += MassOf(ExpWeight(LogitOf(ranked.key), max, 1.0f));
    rank += IsBetter(token, ranked) ? 0 : 1;
  }
  sum = BlockJoin(sum, Add(), &joins);
  rank = BlockJoin(rank, Add(), &joins);
  const int num_top = row.num_top < vocabulary ? row.num_top : vocabulary;
  RowLogprobs& made = out[blockIdx.x];
  const bool writes = threadIdx.x == 0;
  if (writes) {
    made.max = max;
    made.token_logit = LogitOf(token.key);
    made.token_rank = rank;
    made.num_top = num_top;
    made.sum_high = static_cast<uint64_t>(sum >> 64);
    made.sum_low = static_cast<uint64_t>(sum);
  }
  for (int i = 0; i < num_top; ++i) {
    if (i > 0) last = BestBelow(logits, vocabulary, last, &joins);
    if (!writes) continue;
    made.top_ids[i] = last.id;
    made.top_logits[i] = LogitOf(last.key);
  }
}

}  // namespace

CudaError ScoreRows(const float* logits, int64_t stride, int vocabulary,
                    const ScoredRow* rows, int count, const uint32_t* tokens,
                    RowLogprobs* out, Stream stream) {
  if (count == 0) return kCudaSuccess;
  return Launch(ScoreKernel,
                {dim3{static_cast<unsigned>(count)}, dim3{kRowThreads},
                 JoinScratch::kBytes},
                stream, logits, stride, vocabulary, rows, tokens, out);
}

}  // namespace lockstep::cuda
