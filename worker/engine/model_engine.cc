#include "worker/engine/model_engine.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>

#include "common/status_macros.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/engine/batch_builder.h"
#include "worker/engine/kv_memory.h"
#include "worker/engine/pooler.h"
#include "worker/engine/row_sampler.h"
#include "worker/grammar/step_masks.h"
#include "worker/models/decoder.h"
#include "worker/weights/model_weights.h"

namespace lockstep {
namespace {

Decoder::Limits LimitsOf(const ModelConfig& config,
                         const ModelEngine::Options& options) {
  return {
      .positions = static_cast<int>(std::min<int64_t>(
          config.max_context, int64_t{options.num_pages} * options.page_size)),
      .tokens = options.max_step_tokens,
      .logits_rows = options.max_logits_rows};
}

}  // namespace

class ModelEngine::Impl {
 public:
  Impl(const ModelConfig& config, const Shard& shard, const Options& options,
       kernels::Ops* ops, Collective* collective, ModelWeights weights,
       std::unique_ptr<KvMemory> kv_memory)
      : vocab_size_(config.vocab_size),
        shard_(shard),
        weights_(std::move(weights)),
        kv_memory_(std::move(kv_memory)),
        batch_builder_({.page_size = options.page_size,
                        .tokens = options.max_step_tokens,
                        .sequences = options.max_sequences,
                        .logits_rows = options.max_logits_rows}),
        decoder_({&config, &shard_, ops, collective}, &weights_,
                 LimitsOf(config, options)),
        row_sampler_(config.vocab_size, options.max_logits_rows, &ops->pool()),
        pooler_(config.hidden_size),
        masks_(options.grammars,
               {.max_spans = options.max_sequences,
                .vocab_size = static_cast<size_t>(config.vocab_size),
                .has_thread = options.has_mask_thread}) {}

  absl::Status Execute(const StepPlan& plan, StepResult* result) {
    batch_builder_.Build(plan);
    masks_.Begin(plan);
    absl::Status status =
        decoder_.Forward(batch_builder_.input(), kv_memory_->layers());
    if (status.ok()) {
      if (observer_) ShowLogits(plan);
      const auto logits_of = [this](int row, absl::Span<float> room) {
        return decoder_.Logits(row, room);
      };
      row_sampler_.Sample(plan, batch_builder_.rows(), logits_of, &masks_,
                          result);
      const auto hidden_states_of = [this](int first, int count) {
        return decoder_.HiddenStates(first, count);
      };
      status = pooler_.Pool(plan, hidden_states_of, result);
    }
    masks_.End();
    return status;
  }

  void set_logits_observer(LogitsObserver observer) {
    observer_ = std::move(observer);
  }

 private:
  void ShowLogits(const StepPlan& plan) {
    std::vector<float> scratch(vocab_size_);
    const absl::Span<const LogitsRow> rows = batch_builder_.rows();
    for (int i = 0; i < rows.size(); ++i) {
      observer_(plan.spans[rows[i].span], rows[i].position,
                decoder_.Logits(i, absl::MakeSpan(scratch)));
    }
  }

  const int vocab_size_;
  const Shard shard_;
  const ModelWeights weights_;
  const std::unique_ptr<KvMemory> kv_memory_;
  BatchBuilder batch_builder_;
  Decoder decoder_;
  RowSampler row_sampler_;
  Pooler pooler_;
  StepMasks masks_;
  LogitsObserver observer_;
};

absl::StatusOr<std::unique_ptr<ModelEngine>> ModelEngine::Create(
    const ModelFiles& model, const Shard& shard, const Options& options,
    kernels::Ops* ops, Collective* collective, const LayerLoaded& on_layer) {
  if (collective->rank() != shard.rank || collective->size() != shard.size) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the collective is rank ", collective->rank(), " of ",
        collective->size(), ", the shard ", shard.rank, " of ", shard.size));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      ModelWeights weights,
      LoadWeights(*model.tensors, model.config, shard, options.arithmetic,
                  &ops->pool(), on_layer));
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::unique_ptr<KvMemory> kv_memory,
      KvMemory::Create(model.config, shard, options.num_pages,
                       options.page_size, options.kv_type));
  return std::unique_ptr<ModelEngine>(new ModelEngine(
      std::make_unique<Impl>(model.config, shard, options, ops, collective,
                             std::move(weights), std::move(kv_memory))));
}

ModelEngine::ModelEngine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

ModelEngine::~ModelEngine() = default;

absl::Status ModelEngine::Execute(const StepPlan& plan, StepResult* result) {
  return impl_->Execute(plan, result);
}

void ModelEngine::set_logits_observer(LogitsObserver observer) {
  impl_->set_logits_observer(std::move(observer));
}

size_t ModelEngine::PageBytes(const ModelConfig& config, const Shard& shard,
                              int page_size, kernels::KvType kv_type) {
  return KvMemory::PageBytes(config, shard, page_size, kv_type);
}

int64_t ModelEngine::WorkingBytes(const ModelConfig& config, const Shard& shard,
                                  const Options& options) {
  return Decoder::Bytes(config, shard, LimitsOf(config, options));
}

}  // namespace lockstep
