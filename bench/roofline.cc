#include "bench/roofline.h"

#include <cstdint>

#include "common/status_macros.h"
#include "kernels/attention/paged_kv.h"
#include "kernels/weights/dtype.h"
#include "worker/weights/tensor_table.h"

namespace lockstep::bench {
namespace {

struct Peak {
  double operations_per_second;
  const char* name;
};

// In fast arithmetic quantized weights take two 8-bit products each; plain ones
// what is fastest of all that computes with 14 bits or rounds to bfloat16.
Peak PeakOf(bool is_quantized, kernels::Arithmetic arithmetic,
            const Ceilings& ceilings) {
  Peak best = {ceilings.fp32, "fp32"};
  if (arithmetic == kernels::Arithmetic::kStrict) return best;
  const auto consider = [&best](double rate, const char* name) {
    if (rate > best.operations_per_second) best = {rate, name};
  };
  consider(ceilings.int16, "int16");
  if (is_quantized) {
    consider(ceilings.int8 / 2, "int8");
  } else {
    consider(ceilings.bf16, "bf16");
  }
  return best;
}

// Of one number of a key or a value.
double KvNumberBytes(kernels::KvType type, int head_dim) {
  const double scale_bytes = type == kernels::KvType::kInt8 ? sizeof(float) : 0;
  return kernels::KvElementBytes(type) + scale_bytes / head_dim;
}

// As the file stores it; of one that is made of others, as the engine keeps it:
// floats, in fast arithmetic, as integers of 14 bits.
double BytesOf(const Tensor& tensor) {
  if (tensor.reader == nullptr) return tensor.bytes.size();
  double values = 1;
  for (const int64_t size : tensor.shape) values *= size;
  const int block = kernels::BlockValues(tensor.type);
  if (block == 1) return values * sizeof(int16_t);
  return values / block * kernels::BlockBytes(tensor.type);
}

}  // namespace

absl::StatusOr<ModelCost> CostOf(const ModelFiles& model,
                                 kernels::KvType kv_type) {
  const ModelConfig& config = model.config;
  ModelCost cost;
  double quantized_bytes = 0;
  for (const TensorSpec& spec : ExpectedTensors(config)) {
    if (spec.shape.size() != 2) continue;
    const bool is_embedding = spec.name == kEmbeddingName;
    if (is_embedding && !config.tied_embeddings) continue;
    LOCKSTEP_ASSIGN_OR_RETURN(const Tensor tensor,
                              model.tensors->Get(spec.name));
    const double bytes = BytesOf(tensor);
    const double operations = 2.0 * spec.shape[0] * spec.shape[1];
    const bool is_head = is_embedding || spec.name == kHeadName;
    (is_head ? cost.head_bytes : cost.layer_bytes) += bytes;
    (is_head ? cost.head_operations : cost.layer_operations) += operations;
    if (kernels::BlockValues(tensor.type) > 1) quantized_bytes += bytes;
  }
  cost.is_quantized = 2 * quantized_bytes > cost.layer_bytes + cost.head_bytes;
  cost.kv_position_bytes = 2.0 * config.num_layers * config.num_kv_heads *
                           config.head_dim *
                           KvNumberBytes(kv_type, config.head_dim);
  cost.attention_operations =
      4.0 * config.num_layers * config.num_heads * config.head_dim;
  return cost;
}

StepWork WorkOf(const StepPlan& plan) {
  StepWork work = {.tokens = plan.num_tokens,
                   .logits_rows = plan.num_logits_rows};
  for (const SequenceSpan& span : plan.spans) {
    const int64_t end = span.begin + span.count;
    work.kv_positions += end;
    // The token at position p sees p + 1 of them.
    work.attended +=
        (end * (end + 1) - int64_t{span.begin} * (span.begin + 1)) / 2;
  }
  return work;
}

Roof RoofOf(const StepWork& work, const ModelCost& cost,
            kernels::Arithmetic arithmetic, const Ceilings& ceilings) {
  const double bytes = cost.layer_bytes +
                       (work.logits_rows > 0 ? cost.head_bytes : 0) +
                       work.kv_positions * cost.kv_position_bytes;
  const bool fits_l3 = bytes <= ceilings.l3_bytes;
  const double read_seconds =
      bytes / (fits_l3 ? ceilings.l3_read : ceilings.dram_read);

  const Peak peak = PeakOf(cost.is_quantized, arithmetic, ceilings);
  const double compute_seconds =
      (work.tokens * cost.layer_operations +
       work.logits_rows * cost.head_operations) /
          peak.operations_per_second +
      work.attended * cost.attention_operations / ceilings.fp32;

  if (read_seconds >= compute_seconds) {
    return {read_seconds, fits_l3 ? "L3" : "DRAM"};
  }
  return {compute_seconds, peak.name};
}

}  // namespace lockstep::bench
