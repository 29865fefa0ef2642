#include "kernels/attention/kv_store.h"

#include <bit>
#include <cstdint>
#include <limits>

#include "kernels/simd/lanes.h"
#include "kernels/weights/dtype.h"

namespace lockstep::kernels {
namespace {

// Nearest, ties to even; a NaN stays one.
uint16_t BFloat16Of(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (x != x) return static_cast<uint16_t>(bits >> 16 | 0x40);
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

// Nearest, ties to even; what is too large becomes the largest, infinity and
// NaN stay.
uint16_t HalfOf(float x) {
  const uint32_t sign = std::bit_cast<uint32_t>(x) >> 16 & 0x8000;
  const float magnitude = __builtin_fabsf(x);
  const uint32_t bits = std::bit_cast<uint32_t>(magnitude);
  if (x != x) return static_cast<uint16_t>(sign | 0x7e00);
  if (bits == 0x7f800000) return static_cast<uint16_t>(sign | 0x7c00);
  if (magnitude < 0x1p-14f) {  // subnormal: a multiple of 2^-24
    return static_cast<uint16_t>(
        sign | (std::bit_cast<uint32_t>(magnitude + 0.5f) & 0x7ff));
  }
  const uint32_t rounded = (bits + 0xfff + (bits >> 13 & 1)) >> 13;
  constexpr uint32_t kBias = (127 - 15) << 10, kLargest = 0x7bff;
  const uint32_t half = rounded - kBias;
  return static_cast<uint16_t>(sign | (half < kLargest ? half : kLargest));
}

// The vector's largest magnitude over 127. 0 for a vector of zeros, and for one
// too small to divide by; NaN if a number is not finite, which so reaches
// whoever reads the vector.
float Int8Scale(const float* x, int count) {
  float largest = 0;
  bool finite = true;
  for (int i = 0; i < count; ++i) {
    const float magnitude = __builtin_fabsf(x[i]);
    finite &= magnitude <= std::numeric_limits<float>::max();
    largest = magnitude > largest ? magnitude : largest;
  }
  if (!finite) return std::numeric_limits<float>::quiet_NaN();
  return largest < 0x1p-100f ? 0 : largest / 127;
}

// round(x / scale), ties to even, by the reciprocal of a scale of Int8Scale: in
// [-127, 127].
int8_t Int8Of(float x, float inverse_scale) {
  return static_cast<int8_t>(
      std::bit_cast<uint32_t>(x * inverse_scale + kRoundToInt));
}

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

void EncodeKv(KvType type, const float* x, int count, void* out,
              ptrdiff_t stride, float* scale) {
  switch (type) {
    case KvType::kF32: {
      float* to = static_cast<float*>(out);
      for (int i = 0; i < count; ++i) to[i * stride] = x[i];
      return;
    }
    case KvType::kF16: {
      uint16_t* to = static_cast<uint16_t*>(out);
      for (int i = 0; i < count; ++i) to[i * stride] = HalfOf(x[i]);
      return;
    }
    case KvType::kBF16: {
      uint16_t* to = static_cast<uint16_t*>(out);
      for (int i = 0; i < count; ++i) to[i * stride] = BFloat16Of(x[i]);
      return;
    }
    case KvType::kInt8: {
      int8_t* to = static_cast<int8_t*>(out);
      *scale = Int8Scale(x, count);
      const float inverse = *scale > 0 ? 1 / *scale : 0;
      for (int i = 0; i < count; ++i) {
        to[i * stride] = *scale > 0 ? Int8Of(x[i], inverse) : 0;
      }
      return;
    }
  }
}

float DecodeKv(KvType type, const void* data, size_t index) {
  switch (type) {
    case KvType::kF32:
      return static_cast<const float*>(data)[index];
    case KvType::kF16:
      return HalfToFloat(static_cast<const uint16_t*>(data)[index]);
    case KvType::kBF16:
      return BFloat16ToFloat(static_cast<const uint16_t*>(data)[index]);
    case KvType::kInt8:
      return static_cast<const int8_t*>(data)[index];
  }
  return 0;
}

}  // namespace lockstep::kernels
