#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/attention/attend_args.h"
#include "kernels/attention/attention_rule.h"
#include "kernels/attention/paged_kv.h"
#include "kernels/attention/token_batch.h"
#include "kernels/isa/kernel_table.h"

namespace lockstep::kernels {

// What Ops::Attention is given.
struct AttentionInput {
  const float* q;  // [num_tokens, heads, head_dim]
  ptrdiff_t q_stride;
  int heads;
  const int32_t* kv_head_of;  // [heads]
  AttentionRule rule;
  const TokenBatch* batch;
  const PagedKv* kv;
  float* out;  // [num_tokens, heads, head_dim]
  ptrdiff_t out_stride;
};

// The unit that attention over a batch is cut into: consecutive tokens of one
// sequence, and all query heads that share a key-value head, so that its keys
// and values are read once for all of them.
class AttentionTile {
 public:
  // The tile that token `first` begins; it is empty where that token is in the
  // middle of one, or no query head uses the key-value head. `input` must
  // outlive the tile.
  AttentionTile(const AttentionInput& input, int first, int kv_head);

  bool empty() const { return end_ == first_ || sharing_ == 0; }
  int first() const { return first_; }
  int kv_head() const { return kv_head_; }
  int rows() const { return (end_ - first_) * sharing_; }
  // Positions that one of its tokens sees.
  int positions() const { return last_position() + 1 - first_position(); }
  int chunks() const {
    return last_position() / kAttendChunk + 1 - first_chunk();
  }

  // More rows than this are computed in several goes, and by Compute alone.
  bool fits() const { return rows() <= kMaxAttendRows; }

  // The tile's rows of the output. Works on the calling thread alone.
  void Compute(const KernelTable& table) const;

  // The same in parts, whose order is the caller's business: the sums of each
  // of chunks(), which then are merged in order and divided. REQUIRES: fits().
  void ComputeChunk(const KernelTable& table, int chunk, AttendSums sums) const;
  void Finish(const KernelTable& table, AttendSums* chunks) const;

 private:
  int first_position() const {
    return FirstSeen(input_->batch->positions[first_], input_->rule.window);
  }
  int last_position() const { return input_->batch->positions[end_ - 1]; }
  int first_chunk() const { return first_position() / kAttendChunk; }

  struct Heads {
    int list[kMaxAttendRows];
    int count = 0;
  };

  // The next at most kMaxAttendRows heads that share the key-value head, from
  // `*head` on.
  Heads NextHeads(int* head) const;
  AttendArgs Args(const Heads& heads) const;

  const AttentionInput* const input_;
  const int first_;
  const int kv_head_;
  int sharing_ = 0;
  int end_;
};

}  // namespace lockstep::kernels
