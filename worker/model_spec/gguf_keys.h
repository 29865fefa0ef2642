#pragma once

#include <absl/status/status.h>

#include "worker/model_spec/architecture.h"
#include "worker/model_spec/gguf_reader.h"

namespace lockstep {

// Keys of GGUF metadata, after "ARCHITECTURE.", that only some models may have,
// or that are read in several places.
namespace gguf_keys {

inline constexpr char kAttentionScale[] = "attention.scale";
inline constexpr char kExpertSize[] = "expert_feed_forward_length";
inline constexpr char kSharedExpertSize[] = "expert_shared_feed_forward_length";
inline constexpr char kSharedExperts[] = "expert_shared_count";
inline constexpr char kExpertScoring[] = "expert_gating_func";
inline constexpr char kExpertGroups[] = "expert_group_count";
inline constexpr char kGroupsPerToken[] = "expert_group_used_count";
inline constexpr char kExpertScale[] = "expert_weights_scale";
inline constexpr char kDenseLayers[] = "leading_dense_block_count";
inline constexpr char kGuessingLayers[] = "nextn_predict_layers";
inline constexpr char kRenormalize[] = "expert_weights_norm";
inline constexpr char kWindowPattern[] = "attention.sliding_window_pattern";
// The second theta, of the layers with a window.
inline constexpr char kLocalTheta[] = "rope.freq_base_swa";
// How embeddings are made; it changes nothing of what the decoder computes.
inline constexpr char kPoolingType[] = "pooling_type";
// Yarn's, where they are not the usual ones.
inline constexpr char kYarnBetaFast[] = "rope.scaling.yarn_beta_fast";
inline constexpr char kYarnBetaSlow[] = "rope.scaling.yarn_beta_slow";
inline constexpr char kYarnExtFactor[] = "rope.scaling.yarn_ext_factor";

}  // namespace gguf_keys

// UNIMPLEMENTED naming a key of the architecture that is not known, as it may
// change what the model computes.
absl::Status RefuseUnknownGgufKeys(const GgufReader& reader,
                                   const Architecture& architecture);

}  // namespace lockstep
