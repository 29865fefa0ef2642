#include "kernels/kv_store.h"

#include <cstdint>

#include "kernels/kv_codec.h"

namespace lockstep::kernels {
namespace {

void* At(KvType type, void* data, size_t offset) {
  return static_cast<char*>(data) + offset * KvElementBytes(type);
}

}  // namespace

void StoreTokenKv(const float* k, const float* v, const TokenBatch& batch,
                  int token, const PagedKv& kv) {
  const int position = batch.positions[token];
  const int slot = position % kv.page_size;
  const int32_t page =
      batch.page_tables[batch.sequence_of[token]][position / kv.page_size];
  const bool scaled = kv.type == KvType::kInt8;
  for (int head = 0; head < kv.num_kv_heads; ++head) {
    const size_t scale = scaled ? kv.ScaleOffset(page, head, slot) : 0;
    const ptrdiff_t vector = static_cast<ptrdiff_t>(head) * kv.head_dim;
    EncodeKv(kv.type, k + vector, kv.head_dim,
             At(kv.type, kv.keys, kv.KeyOffset(page, head, slot)), kv.page_size,
             scaled ? kv.key_scales + scale : nullptr);
    EncodeKv(kv.type, v + vector, kv.head_dim,
             At(kv.type, kv.values, kv.Offset(page, head, slot)), 1,
             scaled ? kv.value_scales + scale : nullptr);
  }
}

}  // namespace lockstep::kernels
