#pragma once

#include <cstdint>

namespace lockstep::kernels {

// How keys and values are kept. Different types give different bits, so the
// type is part of what a group agrees on.
enum class KvType : uint8_t {
  kF32,
  kF16,   // rounded to nearest, ties to even; what is too large, to the largest
  kBF16,  // rounded to nearest, ties to even
  kInt8,  // a vector of head_dim shares an fp32 scale
};

inline constexpr KvType kKvTypes[] = {KvType::kF32, KvType::kF16, KvType::kBF16,
                                      KvType::kInt8};

// "fp32", "fp16", "bf16", "int8": what --kv_cache_type says.
inline constexpr const char* KvTypeName(KvType type) {
  switch (type) {
    case KvType::kF32:
      return "fp32";
    case KvType::kF16:
      return "fp16";
    case KvType::kBF16:
      return "bf16";
    case KvType::kInt8:
      return "int8";
  }
  return "";
}

}  // namespace lockstep::kernels
