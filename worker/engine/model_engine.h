#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <functional>
#include <memory>

#include "kernels/attention/kv_type.h"
#include "kernels/ops.h"
#include "kernels/weights/arithmetic.h"
#include "worker/collectives/collective.h"
#include "worker/engine/synchronous_engine.h"
#include "worker/grammar/grammar_store.h"
#include "worker/model_spec/model_config.h"
#include "worker/model_spec/shard.h"
#include "worker/weights/model_files.h"
#include "worker/weights/model_weights.h"

namespace lockstep {

// The engine of one rank: its weights, its part of the KV pages, the decoder
// and the samplers. Every buffer is made by Create; Execute allocates nothing
// once every shape was seen.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(
//       auto engine, ModelEngine::Create(model, shard, options, ops,
//       collective));
class ModelEngine final : public SynchronousEngine {
 public:
  struct Options {
    int num_pages = 0;
    int page_size = 16;  // tokens
    int max_step_tokens = 512;
    int max_sequences = 64;
    int max_logits_rows = 64;  // of a step
    kernels::Arithmetic arithmetic = kernels::Arithmetic::kStrict;
    kernels::KvType kv_type = kernels::KvType::kF32;
    // Of the requests that name one; must outlive the engine. Null: none do.
    GrammarStore* grammars = nullptr;
    // A core is free to find masks while the model computes.
    bool has_mask_thread = false;
  };

  // Sees each row of logits that a step computes: the span, the position of its
  // token and the gathered logits [vocab_size]. For goldens and tests.
  using LogitsObserver = std::function<void(
      const SequenceSpan& span, int position, absl::Span<const float> logits)>;

  // `model`, `ops` and `collective` must outlive the engine. `on_layer` hears
  // of the weights, see LoadWeights.
  static absl::StatusOr<std::unique_ptr<ModelEngine>> Create(
      const ModelFiles& model, const Shard& shard, const Options& options,
      kernels::Ops* ops, Collective* collective,
      const LayerLoaded& on_layer = nullptr);

  ~ModelEngine() override;

  absl::Status Execute(const StepPlan& plan, StepResult* result) override;

  void set_logits_observer(LogitsObserver observer);

  // Bytes of one KV page on this rank, all layers.
  static size_t PageBytes(const ModelConfig& config, const Shard& shard,
                          int page_size,
                          kernels::KvType kv_type = kernels::KvType::kF32);

  // About what an engine takes besides its weights and KV pages: activations,
  // logits and the table of positions.
  static int64_t WorkingBytes(const ModelConfig& config, const Shard& shard,
                              const Options& options);

 private:
  class Impl;
  explicit ModelEngine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace lockstep
