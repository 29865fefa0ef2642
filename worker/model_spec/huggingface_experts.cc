#include "worker/model_spec/huggingface_experts.h"

#include <string>

#include "common/status_macros.h"
#include "worker/model_spec/config_limits.h"

namespace lockstep {
namespace {

// How many there are, by the name that the architecture has for it.
const char* CountName(const JsonFields& fields,
                      const Architecture& architecture) {
  if (architecture.sigmoid_router) return "n_routed_experts";
  return fields.Find("num_experts") != nullptr ? "num_experts"
                                               : "num_local_experts";
}

// Other ways of DeepSeek's to score experts and to choose among them.
absl::Status RefuseOtherRouters(const JsonFields& fields) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string scoring,
                            fields.StringOr("scoring_func", "sigmoid"));
  if (scoring != "sigmoid" && scoring != "noaux_tc") {
    return fields.Unsupported("scoring_func",
                              "only sigmoid and noaux_tc, which is one, are");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string method,
                            fields.StringOr("topk_method", "noaux_tc"));
  if (method != "noaux_tc") {
    return fields.Unsupported("topk_method", "only noaux_tc is");
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const int step,
                            fields.IntOr("moe_layer_freq", 1, kMaxLayers, 1));
  if (step != 1) return fields.Unsupported("moe_layer_freq", "only 1 is");
  return absl::OkStatus();
}

absl::Status ReadSigmoidRouter(const JsonFields& fields, ModelConfig* config) {
  ExpertsConfig& experts = config->experts;
  LOCKSTEP_RETURN_IF_ERROR(RefuseOtherRouters(fields));
  LOCKSTEP_ASSIGN_OR_RETURN(experts.num_groups,
                            fields.IntOr("n_group", 1, kMaxExperts, 1));
  LOCKSTEP_ASSIGN_OR_RETURN(
      experts.groups_per_token,
      fields.IntOr("topk_group", 1, kMaxExperts, experts.num_groups));
  LOCKSTEP_ASSIGN_OR_RETURN(
      experts.weight_scale,
      fields.FloatOr("routed_scaling_factor", 0, kMaxScale, 1));
  LOCKSTEP_ASSIGN_OR_RETURN(
      config->num_guessing_layers,
      fields.IntOr("num_nextn_predict_layers", 0, kMaxLayers, 0));
  return absl::OkStatus();
}

absl::Status ReadSharedExpert(const JsonFields& fields,
                              const Architecture& architecture,
                              ExpertsConfig* experts) {
  using SharedExpert = Architecture::SharedExpert;
  if (architecture.shared_expert == SharedExpert::kGated) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        experts->shared_intermediate_size,
        fields.Int("shared_expert_intermediate_size", 1, kMaxIntermediateSize));
  } else if (architecture.shared_expert == SharedExpert::kCounted) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const int count,
        fields.IntOr("n_shared_experts", 0,
                     kMaxIntermediateSize / experts->intermediate_size, 0));
    experts->shared_intermediate_size = count * experts->intermediate_size;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ReadHuggingFaceExperts(const JsonFields& fields,
                                    const Architecture& architecture,
                                    ModelConfig* config) {
  ExpertsConfig& experts = config->experts;
  LOCKSTEP_ASSIGN_OR_RETURN(
      experts.num_experts,
      fields.Int(CountName(fields, architecture), 1, kMaxExperts));
  LOCKSTEP_ASSIGN_OR_RETURN(experts.experts_per_token,
                            fields.Int("num_experts_per_tok", 1, kMaxExperts));
  LOCKSTEP_ASSIGN_OR_RETURN(
      experts.intermediate_size,
      fields.IntOr("moe_intermediate_size", 1, kMaxIntermediateSize,
                   config->intermediate_size));
  if (architecture.Takes("norm_topk_prob")) {
    LOCKSTEP_ASSIGN_OR_RETURN(experts.renormalize,
                              fields.BoolOr("norm_topk_prob", false));
  }
  if (architecture.sigmoid_router) {
    LOCKSTEP_RETURN_IF_ERROR(ReadSigmoidRouter(fields, config));
  }
  return ReadSharedExpert(fields, architecture, &experts);
}

}  // namespace lockstep
