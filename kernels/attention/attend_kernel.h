#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attend_args.h"
#include "kernels/attention/kv_product.h"
#include "kernels/attention/kv_type.h"
#include "kernels/attention/paged_kv.h"
#include "kernels/simd/lanes.h"
#include "kernels/simd/vector_kernels.h"

// Attention of one tile for a vector type V (simd_*.h) over keys and values of
// type E: per block of 64 positions two matrix products around a softmax.
namespace lockstep::kernels {

template <class E>
struct AttendBuffers {
  alignas(64) float q[kMaxAttendRows * kMaxHeadDim];  // scaled
  alignas(64) float scores[kMaxAttendRows * kAttendBlock];
  // int8_t only: of the block's positions.
  alignas(64) float key_scales[kAttendBlock];
  alignas(64) float value_scales[kAttendBlock];
  // Where they can not be read in place: keys of a block as four runs of 16
  // positions, [head_dim, 16] each, and values, [64, padded head_dim].
  alignas(64) E keys[kAttendBlock * kMaxHeadDim];
  alignas(64) E values[kAttendBlock * kMaxHeadDim];
};

// One chunk of a tile, from AttendArgs to its sums.
template <class V, class E>
class ChunkAttender {
 public:
  ChunkAttender(const AttendArgs& args, AttendSums sums,
                AttendBuffers<E>& buffers)
      : args_(args),
        sums_(sums),
        buffers_(buffers),
        head_dim_(args.kv->head_dim),
        padded_dim_(PaddedHeadDim(head_dim_)),
        page_size_(args.kv->page_size),
        keys_in_place_(page_size_ >= kLanes),
        values_in_place_(keys_in_place_ && head_dim_ % kLanes == 0) {}

  void Attend(int chunk) {
    ScaleQueries();
    for (int row = 0; row < args_.rows; ++row) {
      sums_.max[row] = -__builtin_inff();
      sums_.sum[row] = 0;
    }
    for (int i = 0; i < args_.rows * padded_dim_; i += V::kWidth) {
      V::Store(sums_.out + i, V::Zero());
    }
    const int tokens = args_.rows / args_.rows_per_token;
    last_ = args_.first_position + tokens;
    int begin = chunk * kAttendChunk;
    const int end = last_ - begin < kAttendChunk ? last_ : begin + kAttendChunk;
    const int first_seen = FirstSeen(args_.first_position, args_.rule.window);
    if (begin < first_seen) begin = first_seen / kAttendBlock * kAttendBlock;
    for (; begin < end; begin += kAttendBlock) {
      FindRuns(begin, end);
      ComputeScores();
      for (int row = 0; row < args_.rows; ++row) Softmax(row);
      AddValues();
    }
  }

 private:
  static constexpr int kRuns = kAttendBlock / kLanes;
  static constexpr bool kScaled = sizeof(E) == 1;

  void ScaleQueries() {
    const auto scale = V::Set(args_.rule.scale);
    float* q = buffers_.q;
    for (int row = 0; row < args_.rows; ++row, q += head_dim_) {
      const float* from = args_.q +
                          row / args_.rows_per_token * args_.q_stride +
                          args_.heads[row % args_.rows_per_token] * head_dim_;
      for (int d = 0; d < head_dim_; d += V::kWidth) {
        V::StoreFirst(q + d,
                      V::Mul(V::LoadFirst(from + d, head_dim_ - d), scale),
                      head_dim_ - d);
      }
    }
  }

  // Positions of the block up to the row's own; at least one.
  int VisibleTo(int row) const {
    const int visible =
        args_.first_position + row / args_.rows_per_token + 1 - begin_;
    return visible < kAttendBlock ? visible : kAttendBlock;
  }

  // Positions of the block that lie before those it sees; all of it, or more,
  // where it sees none.
  int HiddenFrom(int row) const {
    const int position = args_.first_position + row / args_.rows_per_token;
    const int hidden = FirstSeen(position, args_.rule.window) - begin_;
    return hidden > 0 ? hidden : 0;
  }

  int32_t Page(int position) const {
    return args_.pages[position / page_size_];
  }
  const E* Key(int position) const {
    return static_cast<const E*>(args_.kv->keys) +
           args_.kv->KeyOffset(Page(position), args_.kv_head,
                               position % page_size_);
  }
  const E* Value(int position) const {
    return static_cast<const E*>(args_.kv->values) +
           args_.kv->Offset(Page(position), args_.kv_head,
                            position % page_size_);
  }

  // Where the block at `begin` lies, in runs of 16 positions, and the keys
  // after it, though they be the next chunk's. Each run is fetched while the
  // one before is computed.
  void FindRuns(int begin, int end) {
    begin_ = begin;
    count_ = end - begin < kAttendBlock ? end - begin : kAttendBlock;
    if (!keys_in_place_) GatherKeys();
    if (!values_in_place_) GatherValues();
    for (int run = 0; run < kRuns; ++run) {
      const int at = run * kLanes;
      const int here = at < count_ ? at : 0;
      keys_[run] =
          keys_in_place_ ? Key(begin + here) : buffers_.keys + here * head_dim_;
      values_[run] = values_in_place_ ? Value(begin + here)
                                      : buffers_.values + here * padded_dim_;
      const int next = begin + kAttendBlock + at;
      next_keys_[run] = keys_in_place_ && next < last_ ? Key(next) : keys_[run];
    }
    if constexpr (kScaled) GatherScales();
  }

  void GatherKeys() {
    for (int j = 0; j < count_; ++j) {
      const E* key = Key(begin_ + j);
      E* out = buffers_.keys + j / kLanes * kLanes * head_dim_ + j % kLanes;
      for (int d = 0; d < head_dim_; ++d) out[d * kLanes] = key[d * page_size_];
    }
  }

  void GatherValues() {
    for (int j = 0; j < count_; ++j) {
      const E* value = Value(begin_ + j);
      E* out = buffers_.values + j * padded_dim_;
      for (int d = 0; d < head_dim_; ++d) out[d] = value[d];
      for (int d = head_dim_; d < padded_dim_; ++d) out[d] = {};
    }
  }

  void GatherScales() {
    for (int j = 0, run; j < count_; j += run) {
      const int slot = (begin_ + j) % page_size_;
      run = page_size_ - slot < count_ - j ? page_size_ - slot : count_ - j;
      const size_t at =
          args_.kv->ScaleOffset(Page(begin_ + j), args_.kv_head, slot);
      for (int i = 0; i < run; i += V::kWidth) {
        V::StoreFirst(buffers_.key_scales + j + i,
                      V::LoadFirst(args_.kv->key_scales + at + i, run - i),
                      run - i);
        V::StoreFirst(buffers_.value_scales + j + i,
                      V::LoadFirst(args_.kv->value_scales + at + i, run - i),
                      run - i);
      }
    }
  }

  // Lanes past the block's end hold what lies there; their scores are not used.
  void ComputeScores() {
    MultiplyKv<V, E>({.x = buffers_.q,
                      .x_stride = head_dim_,
                      .rows = args_.rows,
                      .k = head_dim_,
                      .c = buffers_.scores,
                      .c_stride = kAttendBlock,
                      .accumulate = false,
                      .panels = (count_ + kLanes - 1) / kLanes,
                      .k_per_run = head_dim_,
                      .runs = keys_,
                      .k_stride = keys_in_place_ ? page_size_ : kLanes,
                      .panel_run = 1,
                      .panel_stride = 0,
                      .ahead = values_,
                      .ahead_k_stride = kLanes,
                      .ahead_panel_stride = 0});
  }

  // Scores of a row become weights; what was summed so far is rescaled.
  void Softmax(int row) {
    constexpr int kBlockVectors = kAttendBlock / V::kWidth;
    float* scores = buffers_.scores + row * kAttendBlock;
    const int visible = VisibleTo(row), hidden = HiddenFrom(row);
    if (hidden >= kAttendBlock) {
      for (int i = 0; i < kAttendBlock; i += V::kWidth) {
        V::Store(scores + i, V::Zero());
      }
      return;
    }
    const auto none = V::Set(-__builtin_inff());
    const auto soft_cap = V::Set(args_.rule.soft_cap);
    typename V::Floats score[kBlockVectors];
    typename V::Floats max[V::kVectors];
    for (auto& m : max) m = none;
    for (int i = 0; i < kBlockVectors; ++i) {
      const int at = i * V::kWidth;
      score[i] = V::Load(scores + at);
      if constexpr (kScaled) {
        score[i] = V::Mul(score[i], V::Load(buffers_.key_scales + at));
      }
      if (args_.rule.soft_cap > 0) score[i] = SoftCap<V>(score[i], soft_cap);
      score[i] = V::KeepFirst(score[i], visible - at, none);
      if (hidden > 0) score[i] = V::KeepFirst(none, hidden - at, score[i]);
      max[i % V::kVectors] = V::Max(score[i], max[i % V::kVectors]);
    }
    const float block_max = V::FoldMax(max);
    const float old_max = sums_.max[row];
    const float new_max = block_max > old_max ? block_max : old_max;
    const auto shift = V::Set(new_max);
    for (int i = 0; i < kBlockVectors; ++i) {
      score[i] = Exp<V>(V::Sub(score[i], shift));
      auto weight = score[i];
      if constexpr (kScaled) {
        weight = V::Mul(weight, V::Load(buffers_.value_scales + i * V::kWidth));
      }
      V::Store(scores + i * V::kWidth, weight);
    }
    typename V::Floats lanes[V::kVectors];
    for (int v = 0; v < V::kVectors; ++v) {
      constexpr int kStep = V::kVectors;
      lanes[v] = V::Add(V::Add(score[v], score[v + kStep]),
                        V::Add(score[v + 2 * kStep], score[v + 3 * kStep]));
    }
    sums_.max[row] = new_max;
    if (new_max == old_max) {
      sums_.sum[row] += V::FoldSum(lanes);
      return;
    }
    const auto rescale = Exp<V>(V::Set(old_max - new_max));
    float rescale_lanes[V::kWidth];
    V::Store(rescale_lanes, rescale);
    sums_.sum[row] =
        __builtin_fmaf(sums_.sum[row], rescale_lanes[0], V::FoldSum(lanes));
    float* out = sums_.out + row * padded_dim_;
    for (int d = 0; d < padded_dim_; d += V::kWidth) {
      V::Store(out + d, V::Mul(V::Load(out + d), rescale));
    }
  }

  // A row's chain ends at its own last position: in the block that holds the
  // tile, token by token.
  void AddValues() {
    const int step = VisibleTo(0) == count_ ? args_.rows : args_.rows_per_token;
    const bool fetch = keys_in_place_;
    for (int row = 0; row < args_.rows; row += step) {
      MultiplyKv<V, E>({.x = buffers_.scores + row * kAttendBlock,
                        .x_stride = kAttendBlock,
                        .rows = step,
                        .k = VisibleTo(row),
                        .c = sums_.out + row * padded_dim_,
                        .c_stride = padded_dim_,
                        .accumulate = true,
                        .panels = padded_dim_ / kLanes,
                        .k_per_run = kLanes,
                        .runs = values_,
                        .k_stride = values_in_place_ ? head_dim_ : padded_dim_,
                        .panel_run = 0,
                        .panel_stride = kLanes,
                        .ahead = next_keys_,
                        .ahead_k_stride = fetch ? page_size_ : 0,
                        .ahead_panel_stride = fetch ? kLanes * page_size_ : 0});
    }
  }

  const AttendArgs& args_;
  const AttendSums sums_;
  AttendBuffers<E>& buffers_;
  const int head_dim_;
  const int padded_dim_;
  const int page_size_;
  const bool keys_in_place_;
  const bool values_in_place_;
  int last_ = 0;  // position that the tile sees, plus one
  // The block being computed, and its runs.
  int begin_ = 0;
  int count_ = 0;
  const E* keys_[kRuns] = {};
  const E* values_[kRuns] = {};
  const E* next_keys_[kRuns] = {};
};

template <class V, class E>
[[gnu::noinline]] void AttendChunkOf(const AttendArgs& args, int chunk,
                                     AttendSums sums) {
  AttendBuffers<E> buffers;
  ChunkAttender<V, E>(args, sums, buffers).Attend(chunk);
}

template <class V>
void AttendChunk(const AttendArgs& args, int chunk, AttendSums sums) {
  switch (args.kv->type) {
    case KvType::kF32:
      return AttendChunkOf<V, float>(args, chunk, sums);
    case KvType::kF16:
      return AttendChunkOf<V, Half>(args, chunk, sums);
    case KvType::kBF16:
      return AttendChunkOf<V, uint16_t>(args, chunk, sums);
    case KvType::kInt8:
      return AttendChunkOf<V, int8_t>(args, chunk, sums);
  }
}

template <class V>
void MergeChunk(const AttendArgs& args, AttendSums chunk, AttendSums sums) {
  const int padded_dim = PaddedHeadDim(args.kv->head_dim);
  for (int row = 0; row < args.rows; ++row) {
    if (chunk.max[row] == -__builtin_inff()) continue;  // it sees none of it
    const float max =
        chunk.max[row] > sums.max[row] ? chunk.max[row] : sums.max[row];
    const auto scale = Exp<V>(V::Set(sums.max[row] - max));
    const auto chunk_scale = Exp<V>(V::Set(chunk.max[row] - max));
    float lanes[V::kWidth], chunk_lanes[V::kWidth];
    V::Store(lanes, scale);
    V::Store(chunk_lanes, chunk_scale);
    sums.max[row] = max;
    sums.sum[row] = __builtin_fmaf(sums.sum[row], lanes[0],
                                   chunk.sum[row] * chunk_lanes[0]);
    float* out = sums.out + row * padded_dim;
    const float* chunk_out = chunk.out + row * padded_dim;
    for (int d = 0; d < padded_dim; d += V::kWidth) {
      V::Store(out + d, V::Fma(V::Load(out + d), scale,
                               V::Mul(V::Load(chunk_out + d), chunk_scale)));
    }
  }
}

template <class V>
void FinishAttention(const AttendArgs& args, AttendSums sums) {
  const int head_dim = args.kv->head_dim;
  for (int row = 0; row < args.rows; ++row) {
    const auto scale = V::Set(1.0f / sums.sum[row]);
    const float* from = sums.out + row * PaddedHeadDim(head_dim);
    float* out = args.out + row / args.rows_per_token * args.out_stride +
                 args.heads[row % args.rows_per_token] * head_dim;
    for (int d = 0; d < head_dim; d += V::kWidth) {
      V::StoreFirst(out + d, V::Mul(V::Load(from + d), scale), head_dim - d);
    }
  }
}

}  // namespace lockstep::kernels
