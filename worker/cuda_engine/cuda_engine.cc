#include "worker/cuda_engine/cuda_engine.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "kernels/cuda/cuda_types.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/cuda_engine/cuda_decoder.h"
#include "worker/cuda_engine/cuda_model.h"
#include "worker/cuda_engine/cuda_workspace.h"
#include "worker/cuda_engine/device_kv_pages.h"
#include "worker/cuda_engine/device_weights.h"
#include "worker/engine/batch_builder.h"
#include "worker/engine/pooler.h"
#include "worker/engine/row_sampler.h"
#include "worker/grammar/step_masks.h"
#include "worker/sampling/sampler.h"

namespace lockstep {
namespace {

template <typename T>
typename CudaWorkspace<T>::Limits LimitsOf(const ModelConfig& config,
                                           const CudaEngine::Options& options) {
  return {
      .positions = static_cast<int>(std::min<int64_t>(
          config.max_context, int64_t{options.num_pages} * options.page_size)),
      .page_size = options.page_size,
      .tokens = options.max_step_tokens,
      .sequences = options.max_sequences,
      .logits_rows = options.max_logits_rows};
}

CudaApi::Address AddressOf(const void* on_device) {
  return reinterpret_cast<CudaApi::Address>(on_device);
}

// T is of activations, keys and values.
template <typename T>
class TypedEngine final : public CudaEngine {
 public:
  TypedEngine(const ModelConfig& config, const Shard& shard,
              const Options& options, kernels::ThreadPool* pool,
              CudaStream* stream)
      : config_(config),
        shard_(shard),
        options_(options),
        stream_(stream),
        workspace_(config, shard_, LimitsOf<T>(config, options)),
        batch_builder_({.page_size = options.page_size,
                        .tokens = options.max_step_tokens,
                        .sequences = options.max_sequences,
                        .logits_rows = options.max_logits_rows}),
        row_sampler_(config.vocab_size, pool),
        pooler_(config.hidden_size),
        masks_(options.grammars,
               {.max_spans = options.max_sequences,
                .vocab_size = static_cast<size_t>(config.vocab_size),
                .has_thread = options.has_mask_thread}) {
    sampled_rows_.reserve(options.max_logits_rows);
    places_.reserve(options.max_logits_rows);
  }

  // Before the first step.
  absl::Status Load(const TensorSource& tensors, Collective* collective) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        weights_, LoadDeviceWeights(tensors, config_, shard_, stream_));
    LOCKSTEP_RETURN_IF_ERROR(workspace_.Allocate(stream_));
    LOCKSTEP_ASSIGN_OR_RETURN(
        pages_,
        DeviceKvPages<T>::Create(&stream_->device(), config_, shard_,
                                 options_.num_pages, options_.page_size));
    decoder_ = std::make_unique<CudaDecoder<T>>(
        typename CudaDecoder<T>::Parts{.config = &config_,
                                       .shard = &shard_,
                                       .weights = weights_.get(),
                                       .activations = &workspace_.activations(),
                                       .rope = workspace_.rope(),
                                       .stream = stream_,
                                       .collective = collective});
    return absl::OkStatus();
  }

  absl::Status Execute(const StepPlan& plan, StepResult* result) override {
    LOCKSTEP_RETURN_IF_ERROR(stream_->device().MakeCurrent());
    masks_.Begin(plan);
    absl::Status status = Begin(plan);
    if (status.ok()) status = Finish(plan, result);
    masks_.End();
    return status;
  }

  void set_logits_observer(LogitsObserver observer) override {
    observer_ = std::move(observer);
  }

 private:
  // Puts all of a step on the stream.
  absl::Status Begin(const StepPlan& plan) {
    batch_builder_.Build(plan);
    LOCKSTEP_RETURN_IF_ERROR(
        workspace_.batch().Stage(plan, batch_builder_.input(), stream_));
    const int rows = batch_builder_.rows().size();
    LOCKSTEP_RETURN_IF_ERROR(
        decoder_->Launch(workspace_.batch(), rows, pages_->layers()));
    LOCKSTEP_RETURN_IF_ERROR(CopyLogits(plan));
    return CopyHiddenStates(plan);
  }

  // Waits for it, and makes its result.
  absl::Status Finish(const StepPlan& plan, StepResult* result) {
    LOCKSTEP_RETURN_IF_ERROR(stream_->Synchronize());
    if (observer_) ShowLogits(plan);
    const auto logits_of = [this](int row, absl::Span<float> /*room*/) {
      return LogitsAt(places_[row]);
    };
    row_sampler_.Sample(plan, sampled_rows_, logits_of, &masks_, result);
    const absl::Span<const LogitsRow> rows = batch_builder_.rows();
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!IsChosenOnDevice(plan, rows[i])) continue;
      result->spans[rows[i].span].token = workspace_.host_best_ids()[i];
    }
    const auto hidden_states_of = [this](int first, int /*count*/) {
      return workspace_.host_hidden_states() +
             size_t{1} * first * config_.hidden_size;
    };
    return pooler_.Pool(plan, hidden_states_of, result);
  }

  // Whether the largest logit decides, and nothing else is asked for.
  bool IsChosenOnDevice(const StepPlan& plan, const LogitsRow& row) const {
    const Sequence& sequence = *plan.spans[row.span].sequence;
    return !row.is_prompt && !masks_.HasMask(row.span) &&
           Sampler::TakesLargest(sequence) &&
           sequence.sampling().logprobs_plus_one() == 0;
  }

  // The best ids of all rows, and the logits of those that need more.
  absl::Status CopyLogits(const StepPlan& plan) {
    const absl::Span<const LogitsRow> rows = batch_builder_.rows();
    sampled_rows_.clear();
    places_.clear();
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool is_chosen = IsChosenOnDevice(plan, rows[i]);
      if (!is_chosen) {
        sampled_rows_.push_back(rows[i]);
        places_.push_back(static_cast<int>(i));
      }
      if (is_chosen && !observer_) continue;
      const float* const logits =
          decoder_->logits() + i * decoder_->logits_stride();
      LOCKSTEP_RETURN_IF_ERROR(stream_->CopyToHost(
          workspace_.host_logits() + i * config_.vocab_size, AddressOf(logits),
          config_.vocab_size * sizeof(float)));
    }
    if (sampled_rows_.size() == rows.size()) return absl::OkStatus();
    return stream_->CopyToHost(workspace_.host_best_ids(),
                               AddressOf(workspace_.activations().best_ids),
                               rows.size() * sizeof(uint32_t));
  }

  // Of all tokens, where the plan embeds a sequence.
  absl::Status CopyHiddenStates(const StepPlan& plan) {
    const bool embeds = std::any_of(
        plan.spans.begin(), plan.spans.end(),
        [](const SequenceSpan& span) { return span.sequence->is_embedded(); });
    if (!embeds) return absl::OkStatus();
    LOCKSTEP_RETURN_IF_ERROR(decoder_->LaunchHiddenStates(plan.num_tokens));
    return stream_->CopyToHost(
        workspace_.host_hidden_states(),
        AddressOf(workspace_.activations().delta),
        size_t{1} * plan.num_tokens * config_.hidden_size * sizeof(float));
  }

  absl::Span<const float> LogitsAt(int row) const {
    return {workspace_.host_logits() + size_t{1} * row * config_.vocab_size,
            static_cast<size_t>(config_.vocab_size)};
  }

  void ShowLogits(const StepPlan& plan) {
    const absl::Span<const LogitsRow> rows = batch_builder_.rows();
    for (size_t i = 0; i < rows.size(); ++i) {
      observer_(plan.spans[rows[i].span], rows[i].position, LogitsAt(i));
    }
  }

  const ModelConfig& config_;
  const Shard shard_;
  const Options options_;
  CudaStream* const stream_;
  std::unique_ptr<DeviceWeights> weights_;
  CudaWorkspace<T> workspace_;
  std::unique_ptr<DeviceKvPages<T>> pages_;
  std::unique_ptr<CudaDecoder<T>> decoder_;
  BatchBuilder batch_builder_;
  RowSampler row_sampler_;
  Pooler pooler_;
  StepMasks masks_;
  LogitsObserver observer_;
  // Of the step: the rows that the host samples, and which of all they are.
  std::vector<LogitsRow> sampled_rows_;
  std::vector<int> places_;
};

// make(T()) of the arithmetic's T.
template <typename Make>
auto OfArithmetic(kernels::Arithmetic arithmetic, const Make& make) {
  return arithmetic == kernels::Arithmetic::kStrict ? make(float())
                                                    : make(cuda::BFloat16());
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaEngine>> CudaEngine::Create(
    const ModelFiles& model, const Shard& shard, const Options& options,
    kernels::ThreadPool* pool, CudaStream* stream, Collective* collective) {
  LOCKSTEP_RETURN_IF_ERROR(CheckCudaModel(model.config));
  LOCKSTEP_RETURN_IF_ERROR(CheckCudaShards(model.config, shard.size));
  if (collective != nullptr &&
      (collective->rank() != shard.rank || collective->size() != shard.size)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the collective is rank ", collective->rank(), " of ",
        collective->size(), ", the shard ", shard.rank, " of ", shard.size));
  }
  return OfArithmetic(
      options.arithmetic,
      [&]<typename T>(T) -> absl::StatusOr<std::unique_ptr<CudaEngine>> {
        auto engine = std::make_unique<TypedEngine<T>>(model.config, shard,
                                                       options, pool, stream);
        LOCKSTEP_RETURN_IF_ERROR(engine->Load(*model.tensors, collective));
        return engine;
      });
}

int64_t CudaEngine::PageBytes(const ModelConfig& config, const Shard& shard,
                              int page_size, kernels::Arithmetic arithmetic) {
  return OfArithmetic(arithmetic, [&]<typename T>(T) {
    return DeviceKvPages<T>::PageBytes(config, shard, page_size);
  });
}

int64_t CudaEngine::WorkspaceBytes(const ModelConfig& config,
                                   const Shard& shard, const Options& options) {
  return OfArithmetic(options.arithmetic, [&]<typename T>(T) {
    return CudaWorkspace<T>(config, shard, LimitsOf<T>(config, options))
        .bytes();
  });
}

}  // namespace lockstep
