#pragma once

#include <cstdint>

#include "kernels/attention/paged_kv.h"

namespace lockstep {

// The most that a model file may say, well above any model there is and low
// enough that products of two fit in 64 bits and rows fit in an int.
inline constexpr int64_t kMaxVocabSize = 1 << 22;
inline constexpr int64_t kMaxHiddenSize = 1 << 17;
inline constexpr int64_t kMaxIntermediateSize = 1 << 20;
inline constexpr int64_t kMaxLayers = 1024;
inline constexpr int64_t kMaxHeads = 1024;
inline constexpr int64_t kMaxExperts = 1024;
inline constexpr int64_t kMaxHeadDim = kernels::kMaxHeadDim;
inline constexpr int64_t kMaxContext = 1 << 24;  // tokens
inline constexpr double kMaxScale = 1e6;  // of embeddings, scores, logits
inline constexpr double kMaxNormEps = 0.1;
inline constexpr double kMaxRopeTheta = 1e12;
inline constexpr double kMaxRopeFactor = 1e4;

}  // namespace lockstep
