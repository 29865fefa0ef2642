#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/kernel_table.h"
#include "kernels/lanes.h"
#include "kernels/matrix_tile.h"
#include "kernels/vector_kernels.h"

// Attention of one tile for a vector type V (simd_*.h): per block of 64
// positions two matrix products around a softmax that is rescaled as larger
// scores turn up.
namespace lockstep::kernels {

template <class V>
struct AttendBuffers {
  // Where they can not be read in place: keys of a block as four panels of 16
  // positions, [head_dim, 16] each, and values, [64, padded head_dim].
  alignas(64) float keys[kAttendBlock * kMaxHeadDim];
  alignas(64) float values[kAttendBlock * kMaxHeadDim];
  alignas(64) float scores[kMaxAttendRows * kAttendBlock];
  alignas(64) float out[kMaxAttendRows * kMaxHeadDim];
  float max[kMaxAttendRows];
  float sum[kMaxAttendRows];
};

// One tile, from AttendArgs to its rows of the output.
template <class V>
class Attender {
 public:
  Attender(const AttendArgs& args, AttendBuffers<V>& buffers)
      : args_(args),
        buffers_(buffers),
        head_dim_(args.kv->head_dim),
        padded_dim_((head_dim_ + kLanes - 1) / kLanes * kLanes) {}

  void Attend() {
    for (int row = 0; row < args_.rows; ++row) {
      buffers_.max[row] = -__builtin_inff();
      buffers_.sum[row] = 0;
    }
    for (int i = 0; i < args_.rows * padded_dim_; i += V::kWidth) {
      V::Store(buffers_.out + i, V::Zero());
    }
    const int tokens = args_.rows / args_.rows_per_token;
    const int end = args_.first_position + tokens;
    for (int begin = 0; begin < end; begin += kAttendBlock) {
      const int count = end - begin < kAttendBlock ? end - begin : kAttendBlock;
      PrefetchKeys(begin + kAttendBlock, end);
      ComputeScores(begin, count);
      PrefetchValues(begin + kAttendBlock, end);
      for (int row = 0; row < args_.rows; ++row) {
        Softmax(row, VisibleTo(row, begin));
      }
      AddValues(begin, count);
    }
    for (int row = 0; row < args_.rows; ++row) Finish(row);
  }

 private:
  // Positions of the block at `begin` that the row sees; at least one.
  int VisibleTo(int row, int begin) const {
    const int visible =
        args_.first_position + row / args_.rows_per_token + 1 - begin;
    return visible < kAttendBlock ? visible : kAttendBlock;
  }

  const float* Key(int position) const {
    const PagedKv& kv = *args_.kv;
    return kv.keys + kv.KeyOffset(args_.pages[position / kv.page_size],
                                  args_.kv_head, position % kv.page_size);
  }

  const float* Value(int position) const {
    const PagedKv& kv = *args_.kv;
    return kv.values + kv.Offset(args_.pages[position / kv.page_size],
                                 args_.kv_head, position % kv.page_size);
  }

  // Pages lie anywhere, so the processor does not foresee what is read next:
  // the keys and values of a block are fetched while the one before is
  // computed.
  void PrefetchKeys(int begin, int end) const {
    const int page_size = args_.kv->page_size;
    for (int p = begin; p < end && p < begin + kAttendBlock; p += kLanes) {
      const float* key = Key(p);
      for (int d = 0; d < head_dim_; ++d) {
        __builtin_prefetch(key + d * page_size, 0, 2);
      }
    }
  }

  void PrefetchValues(int begin, int end) const {
    for (int p = begin; p < end && p < begin + kAttendBlock; p += kLanes) {
      const float* value = Value(p);
      for (int i = 0; i < kLanes * head_dim_; i += 16) {
        __builtin_prefetch(value + i, 0, 2);
      }
    }
  }

  // Lanes past the block's end hold what lies there; their scores are not used.
  void ComputeScores(int begin, int count) {
    constexpr int kPanels = kAttendBlock / kLanes;
    const int page_size = args_.kv->page_size;
    const bool in_place = page_size >= kLanes;
    if (!in_place) PackKeys(begin, count);
    const int panels = (count + kLanes - 1) / kLanes;
    const float* keys[kPanels];
    for (int p = 0; p < panels; ++p) {
      keys[p] = in_place ? Key(begin + p * kLanes)
                         : buffers_.keys + p * kLanes * head_dim_;
    }
    Multiply<V>({.x = args_.q,
                 .x_stride = head_dim_,
                 .rows = args_.rows,
                 .w = keys,
                 .k_stride = in_place ? page_size : kLanes,
                 .panels = panels,
                 .k = head_dim_,
                 .c = buffers_.scores,
                 .c_stride = kAttendBlock,
                 .accumulate = false});
  }

  void PackKeys(int begin, int count) {
    const int page_size = args_.kv->page_size;
    for (int j = 0; j < count; ++j) {
      const float* key = Key(begin + j);
      float* out = buffers_.keys + j / kLanes * kLanes * head_dim_ + j % kLanes;
      for (int d = 0; d < head_dim_; ++d) out[d * kLanes] = key[d * page_size];
    }
  }

  // Scores of a row become weights; what was summed so far is rescaled.
  void Softmax(int row, int count) {
    constexpr int kBlockVectors = kAttendBlock / V::kWidth;
    float* scores = buffers_.scores + row * kAttendBlock;
    const auto none = V::Set(-__builtin_inff());
    typename V::Floats score[kBlockVectors];
    typename V::Floats max[V::kVectors];
    for (auto& m : max) m = none;
    for (int i = 0; i < kBlockVectors; ++i) {
      score[i] = V::KeepFirst(V::Load(scores + i * V::kWidth),
                              count - i * V::kWidth, none);
      max[i % V::kVectors] = V::Max(score[i], max[i % V::kVectors]);
    }
    const float block_max = V::FoldMax(max);
    const float old_max = buffers_.max[row];
    const float new_max = block_max > old_max ? block_max : old_max;
    const auto shift = V::Set(new_max);
    for (int i = 0; i < kBlockVectors; ++i) {
      score[i] = Exp<V>(V::Sub(score[i], shift));
      V::Store(scores + i * V::kWidth, score[i]);
    }
    typename V::Floats lanes[V::kVectors];
    for (int v = 0; v < V::kVectors; ++v) {
      constexpr int kStep = V::kVectors;
      lanes[v] = V::Add(V::Add(score[v], score[v + kStep]),
                        V::Add(score[v + 2 * kStep], score[v + 3 * kStep]));
    }
    const auto rescale = Exp<V>(V::Set(old_max - new_max));
    float rescale_lanes[V::kWidth];
    V::Store(rescale_lanes, rescale);
    buffers_.max[row] = new_max;
    buffers_.sum[row] =
        __builtin_fmaf(buffers_.sum[row], rescale_lanes[0], V::FoldSum(lanes));
    if (rescale_lanes[0] == 1) return;
    float* out = buffers_.out + row * padded_dim_;
    for (int d = 0; d < padded_dim_; d += V::kWidth) {
      V::Store(out + d, V::Mul(V::Load(out + d), rescale));
    }
  }

  // A row's chain ends at its own last position: in the block that holds the
  // tile, token by token.
  void AddValues(int begin, int count) {
    const bool in_place =
        head_dim_ % kLanes == 0 && args_.kv->page_size >= kLanes;
    if (!in_place) PackValues(begin, count);
    const int step =
        VisibleTo(0, begin) == count ? args_.rows : args_.rows_per_token;
    for (int row = 0; row < args_.rows; row += step) {
      const int visible = VisibleTo(row, begin);
      if (in_place) {
        const int page_size = args_.kv->page_size;
        for (int j = 0, run; j < visible; j += run) {
          const int in_page = page_size - (begin + j) % page_size;
          run = visible - j < in_page ? visible - j : in_page;
          AddRun(row, step, j, run, Value(begin + j));
        }
      } else {
        AddRun(row, step, 0, visible, buffers_.values);
      }
    }
  }

  void PackValues(int begin, int count) {
    for (int j = 0; j < count; ++j) {
      const float* value = Value(begin + j);
      float* out = buffers_.values + j * padded_dim_;
      for (int d = 0; d < padded_dim_; d += V::kWidth) {
        V::Store(out + d, V::LoadFirst(value + d, head_dim_ - d));
      }
    }
  }

  // out[row …] += weights of positions [j, j + run) times their values.
  void AddRun(int row, int rows, int j, int run, const float* values) {
    const float* panels[kMaxHeadDim / kLanes];
    for (int p = 0; p < padded_dim_ / kLanes; ++p)
      panels[p] = values + p * kLanes;
    Multiply<V>({.x = buffers_.scores + row * kAttendBlock + j,
                 .x_stride = kAttendBlock,
                 .rows = rows,
                 .w = panels,
                 .k_stride = padded_dim_,
                 .panels = padded_dim_ / kLanes,
                 .k = run,
                 .c = buffers_.out + row * padded_dim_,
                 .c_stride = padded_dim_,
                 .accumulate = true});
  }

  void Finish(int row) {
    const auto scale = V::Set(1.0f / buffers_.sum[row]);
    const float* sums = buffers_.out + row * padded_dim_;
    float* out = args_.out + row * head_dim_;
    for (int d = 0; d < head_dim_; d += V::kWidth) {
      V::StoreFirst(out + d, V::Mul(V::Load(sums + d), scale), head_dim_ - d);
    }
  }

  const AttendArgs& args_;
  AttendBuffers<V>& buffers_;
  const int head_dim_;
  const int padded_dim_;
};

template <class V>
void Attend(const AttendArgs& args) {
  AttendBuffers<V> buffers;
  Attender<V>(args, buffers).Attend();
}

}  // namespace lockstep::kernels
