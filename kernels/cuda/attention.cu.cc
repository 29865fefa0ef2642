#include "kernels/cuda/attention.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "kernels/cuda/attention_sums.h"
#include "kernels/cuda/bfloat16.h"
#include "kernels/cuda/device.h"
#include "kernels/cuda/reduction.h"

namespace lockstep::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kThreads = kWarps * kWarpLanes;
constexpr int kRowsPerWarp = kTileRows / kWarps;
constexpr int kBlock = kWarpLanes;  // positions at a time, a lane each
constexpr float kLog2E = 0x1.715476p+0f;

// How a tile's rows are spread over heads and tokens.
struct TileShape {
  int heads_per_kv_head;
  int heads;  // of a tile
};

// A block's shared memory. Dimensions beyond head_dim are zeros.
template <typename T, int kPerLane>
struct Shared {
  static constexpr int kDim = kPerLane * kWarpLanes;
  // Lanes read keys side by side, 16 bytes each: other banks for each of them.
  static constexpr int kKeyStride = kDim + Pack<T>::kSize;

  float q[kTileRows][kDim];
  float weights[kTileRows][kBlock];
  alignas(16) T keys[kBlock][kKeyStride];
  alignas(16) T values[kBlock][kDim];
};

// One tile of one key-value head.
template <typename T, int kPerLane>
class TileKernel {
 public:
  using Memory = Shared<T, kPerLane>;
  using Sums = AttentionSums<kPerLane>;

  __device__ TileKernel(const AttentionArgs<T>& args, const PagedBatch& batch,
                        const PagedKv<T>& kv, const AttentionTile& tile,
                        const TileShape& shape)
      : args_(args),
        kv_(kv),
        tile_(tile),
        shape_(shape),
        positions_(batch.positions + tile.first_token),
        pages_(batch.page_tables +
               static_cast<size_t>(batch.sequence_of[tile.first_token]) *
                   batch.page_table_stride),
        kv_head_(blockIdx.y),
        first_head_(blockIdx.z * shape.heads),
        query_factor_(args.soft_cap == 0 ? args.scale * kLog2E
                                         : args.scale / args.soft_cap),
        warp_(threadIdx.x / kWarpLanes),
        lane_(threadIdx.x % kWarpLanes),
        shared_(*DynamicShared<Memory>()) {}

  __device__ void Run(float* partials) {
    LoadQueries();
    Sums total[kRowsPerWarp], chunk[kRowsPerWarp];
#pragma unroll
    for (Sums& sums : total) sums.Clear();
    for (int c = tile_.begin_chunk; c < tile_.end_chunk; ++c) {
      SumChunk(c, chunk);
#pragma unroll
      for (int i = 0; i < kRowsPerWarp; ++i) total[i].Merge(chunk[i]);
    }
#pragma unroll
    for (int i = 0; i < kRowsPerWarp; ++i) {
      if (!Holds(RowOf(i))) continue;
      if (tile_.first_partial < 0) {
        WriteOut(RowOf(i), total[i]);
      } else {
        WritePartial(RowOf(i), total[i], partials);
      }
    }
  }

 private:
  __device__ int RowOf(int i) const { return warp_ + i * kWarps; }
  __device__ int TokenOf(int row) const { return row / shape_.heads; }
  // Among all heads.
  __device__ int HeadOf(int row) const {
    return kv_head_ * shape_.heads_per_kv_head + first_head_ +
           row % shape_.heads;
  }
  __device__ bool Holds(int row) const {
    return TokenOf(row) < tile_.num_tokens &&
           first_head_ + row % shape_.heads < shape_.heads_per_kv_head;
  }

  // The first position that a token sees.
  __device__ int FirstSeen(int token) const {
    const int first = positions_[token] + 1 - args_.window;
    return args_.window == 0 || first < 0 ? 0 : first;
  }

  // A thread reads back only what lanes of its own warp have written.
  __device__ void LoadQueries() {
#pragma unroll
    for (int i = 0; i < kRowsPerWarp; ++i) {
      const int row = RowOf(i);
      const bool holds = Holds(row);
      const T* q = args_.q +
                   (tile_.first_token + TokenOf(row)) * args_.q_stride +
                   static_cast<ptrdiff_t>(HeadOf(row)) * kv_.head_dim;
      for (int d = lane_; d < Memory::kDim; d += kWarpLanes) {
        shared_.q[row][d] =
            holds && d < kv_.head_dim ? ToFloat(q[d]) * query_factor_ : 0.0f;
      }
    }
  }

  __device__ void SumChunk(int chunk, Sums* sums) {
#pragma unroll
    for (int i = 0; i < kRowsPerWarp; ++i) sums[i].Clear();
    const int first = FirstSeen(0), last = positions_[tile_.num_tokens - 1];
    const int chunk_begin = chunk * kAttentionChunk;
    const int begin = first > chunk_begin ? first : chunk_begin;
    const int chunk_end = chunk_begin + kAttentionChunk;
    const int end = last + 1 < chunk_end ? last + 1 : chunk_end;
    for (int block = begin / kBlock * kBlock; block < end; block += kBlock) {
      Load(kv_.keys, block, begin, end, &shared_.keys[0][0],
           Memory::kKeyStride);
      Load(kv_.values, block, begin, end, &shared_.values[0][0], Memory::kDim);
      __syncthreads();
#pragma unroll
      for (int i = 0; i < kRowsPerWarp; ++i) {
        if (Holds(RowOf(i))) Weigh(RowOf(i), block + lane_, &sums[i]);
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < kRowsPerWarp; ++i) {
        if (Holds(RowOf(i))) AddValues(RowOf(i), &sums[i]);
      }
      __syncthreads();  // before the next block's keys and values
    }
  }

  // Vectors of positions [block, block + kBlock); zeros outside [begin, end),
  // which may be nobody's.
  __device__ void Load(const T* from, int block, int begin, int end, T* to,
                       int stride) {
    constexpr int kSize = Pack<T>::kSize;
    constexpr int kPacks = Memory::kDim / kSize;
    for (int i = threadIdx.x; i < kBlock * kPacks; i += kThreads) {
      const int position = block + i / kPacks, d = i % kPacks * kSize;
      Pack<T> pack = {};
      if (position >= begin && position < end) {
        LoadPack(from + kv_.Offset(pages_, position, kv_head_), d, &pack);
      }
      *reinterpret_cast<Pack<T>*>(to + i / kPacks * stride + d) = pack;
    }
  }

  __device__ void LoadPack(const T* vector, int d, Pack<T>* pack) {
    if (kv_.head_dim % Pack<T>::kSize == 0) {
      if (d < kv_.head_dim) {
        *pack = *reinterpret_cast<const Pack<T>*>(vector + d);
      }
      return;
    }
    for (int i = 0; i < Pack<T>::kSize; ++i) {
      if (d + i < kv_.head_dim) pack->at[i] = vector[d + i];
    }
  }

  // The weight of a lane's position, into shared memory and the sums.
  __device__ void Weigh(int row, int position, Sums* sums) {
    const int token = TokenOf(row);
    const bool seen =
        position <= positions_[token] && position >= FirstSeen(token);
    const float score = seen ? Score(row) : MinusInfinity();
    const float largest = fmaxf(sums->largest, WarpMax(score));
    float weight = 0;
    if (largest != MinusInfinity()) {
      sums->RaiseTo(largest);
      weight = exp2f(score - largest);
    }
    sums->weight += WarpSum(weight);
    shared_.weights[row][lane_] = weight;
  }

  // In units of log 2.
  __device__ float Score(int row) const {
    constexpr int kSize = Pack<T>::kSize;
    float score = 0;
    for (int d = 0; d < Memory::kDim; d += kSize) {
      const auto key =
          *reinterpret_cast<const Pack<T>*>(&shared_.keys[lane_][d]);
#pragma unroll
      for (int i = 0; i < kSize; ++i) {
        score = fmaf(shared_.q[row][d + i], ToFloat(key.at[i]), score);
      }
    }
    if (args_.soft_cap == 0) return score;
    return args_.soft_cap * kLog2E * tanhf(score);
  }

  __device__ void AddValues(int row, Sums* sums) const {
    for (int p = 0; p < kBlock; ++p) {
      const float weight = shared_.weights[row][p];
#pragma unroll
      for (int i = 0; i < kPerLane; ++i) {
        const float value = ToFloat(shared_.values[p][lane_ + i * kWarpLanes]);
        sums->out[i] = fmaf(weight, value, sums->out[i]);
      }
    }
  }

  __device__ void WriteOut(int row, const Sums& sums) const {
    T* out = args_.out + (tile_.first_token + TokenOf(row)) * args_.out_stride +
             static_cast<ptrdiff_t>(HeadOf(row)) * kv_.head_dim;
    sums.Write(lane_, kv_.head_dim, out);
  }

  __device__ void WritePartial(int row, const Sums& sums,
                               float* partials) const {
    const size_t partial = tile_.first_partial + TokenOf(row);
    float* to = partials + (partial * args_.heads + HeadOf(row)) *
                               (kv_.head_dim + kPartialExtra);
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int d = lane_ + i * kWarpLanes;
      if (d < kv_.head_dim) to[d] = sums.out[i];
    }
    if (lane_ == 0) {
      to[kv_.head_dim] = sums.weight;
      to[kv_.head_dim + 1] = sums.largest;
    }
  }

  const AttentionArgs<T>& args_;
  const PagedKv<T>& kv_;
  const AttentionTile& tile_;
  const TileShape& shape_;
  const int32_t* const positions_;
  const int32_t* const pages_;
  const int kv_head_;
  const int first_head_;  // of this tile, within the key-value head
  const float query_factor_;
  const int warp_, lane_;
  Memory& shared_;
};

// Grid: tiles, key-value heads, tiles of a key-value head's heads.
template <typename T, int kPerLane>
__global__ void __launch_bounds__(kThreads, 3)
    AttendKernel(AttentionArgs<T> args, PagedBatch batch, PagedKv<T> kv,
                 const AttentionTile* tiles, TileShape shape, float* partials) {
  const AttentionTile tile = tiles[blockIdx.x];
  TileKernel<T, kPerLane>(args, batch, kv, tile, shape).Run(partials);
}

// Grid: merges, heads; a warp each.
template <typename T, int kPerLane>
__global__ void __launch_bounds__(kWarpLanes)
    MergeKernel(AttentionArgs<T> args, int head_dim,
                const AttentionMerge* merges, const float* partials) {
  const AttentionMerge merge = merges[blockIdx.x];
  const int head = blockIdx.y, lane = threadIdx.x;
  AttentionSums<kPerLane> total;
  total.Clear();
  for (int n = 0; n < merge.num_partials; ++n) {
    const size_t partial = merge.first_partial + n * merge.step;
    const float* from =
        partials + (partial * args.heads + head) * (head_dim + kPartialExtra);
    AttentionSums<kPerLane> sums = {from[head_dim + 1], from[head_dim], {}};
#pragma unroll
    for (int i = 0; i < kPerLane; ++i) {
      const int d = lane + i * kWarpLanes;
      if (d < head_dim) sums.out[i] = from[d];
    }
    total.Merge(sums);
  }
  T* out = args.out + merge.token * args.out_stride +
           static_cast<ptrdiff_t>(head) * head_dim;
  total.Write(lane, head_dim, out);
}

template <typename T, int kPerLane>
CudaError LaunchAttention(const AttentionArgs<T>& args, const PagedBatch& batch,
                          const PagedKv<T>& kv, const DeviceAttentionPlan& plan,
                          Stream stream) {
  const int group = args.heads / kv.num_kv_heads;
  const TileShape shape = {group, AttentionPlan::HeadsOf(group)};
  const dim3 grid = {
      static_cast<unsigned>(plan.num_tiles),
      static_cast<unsigned>(kv.num_kv_heads),
      static_cast<unsigned>((group + shape.heads - 1) / shape.heads)};
  const CudaError error =
      Launch(AttendKernel<T, kPerLane>,
             {grid, dim3{kThreads}, sizeof(Shared<T, kPerLane>)}, stream, args,
             batch, kv, plan.tiles, shape, plan.partials);
  if (error != kCudaSuccess || plan.num_merges == 0) return error;
  return Launch(MergeKernel<T, kPerLane>,
                {dim3{static_cast<unsigned>(plan.num_merges),
                      static_cast<unsigned>(args.heads)},
                 dim3{kWarpLanes}},
                stream, args, kv.head_dim, plan.merges, plan.partials);
}

}  // namespace

template <typename T>
CudaError Attend(const AttentionArgs<T>& args, const PagedBatch& batch,
                 const PagedKv<T>& kv, const DeviceAttentionPlan& plan,
                 Stream stream) {
  if (kv.head_dim > kMaxHeadDim || args.heads % kv.num_kv_heads != 0) {
    return kCudaInvalidValue;
  }
  if (plan.num_tiles == 0) return kCudaSuccess;
  const auto launch = kv.head_dim <= 32    ? LaunchAttention<T, 1>
                      : kv.head_dim <= 64  ? LaunchAttention<T, 2>
                      : kv.head_dim <= 96  ? LaunchAttention<T, 3>
                      : kv.head_dim <= 128 ? LaunchAttention<T, 4>
                                           : LaunchAttention<T, 8>;
  return launch(args, batch, kv, plan, stream);
}

template CudaError Attend(const AttentionArgs<float>&, const PagedBatch&,
                          const PagedKv<float>&, const DeviceAttentionPlan&,
                          Stream);
template CudaError Attend(const AttentionArgs<BFloat16>&, const PagedBatch&,
                          const PagedKv<BFloat16>&, const DeviceAttentionPlan&,
                          Stream);

}  // namespace lockstep::cuda
