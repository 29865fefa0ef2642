#pragma once

#include <absl/status/statusor.h>

#include <cstdint>

#include "bench/ceilings.h"
#include "kernels/attention/kv_type.h"
#include "kernels/weights/arithmetic.h"
#include "worker/core/step_plan.h"
#include "worker/weights/model_files.h"

namespace lockstep::bench {

// What a model takes, by its shape and by how its file stores it.
struct ModelCost {
  // Of every matrix that a step multiplies by, as stored.
  double layer_bytes = 0;
  double head_bytes = 0;
  double kv_position_bytes = 0;  // keys and values of one position
  // A multiply-add counts as two.
  double layer_operations = 0;      // of one token, but for attention
  double head_operations = 0;       // of one row of logits
  double attention_operations = 0;  // of one token with one position
  bool is_quantized = false;        // most weights are
};

absl::StatusOr<ModelCost> CostOf(const ModelFiles& model,
                                 kernels::KvType kv_type);

// What a step computes, counted from its plan.
struct StepWork {
  int tokens = 0;
  int logits_rows = 0;
  int64_t kv_positions = 0;  // read: each sequence's own, once
  int64_t attended = 0;      // pairs of a token and a position it sees
};

StepWork WorkOf(const StepPlan& plan);

// The least time that work can take: all of its bytes at the measured
// bandwidth, or all of its operations at the measured peak, whichever is
// longer.
struct Roof {
  double seconds = 0;
  const char* bound = "";  // "DRAM", "L3", "int8", "int16", "bf16", "fp32"
};

// Weights and keys and values are read once a step; from L3 where the layers,
// the head and they fit it. Products run at the peak of the instruction that
// `arithmetic` may use, attention at that of fp32.
Roof RoofOf(const StepWork& work, const ModelCost& cost,
            kernels::Arithmetic arithmetic, const Ceilings& ceilings);

}  // namespace lockstep::bench
