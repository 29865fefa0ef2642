#include "worker/cuda_engine/cuda_engine.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "common/status_macros.h"
#include "kernels/cuda/cuda_types.h"
#include "worker/core/host_part.h"
#include "worker/core/sequence.h"
#include "worker/core/step_plan.h"
#include "worker/core/step_result.h"
#include "worker/cuda_engine/cuda_decoder.h"
#include "worker/cuda_engine/cuda_model.h"
#include "worker/cuda_engine/cuda_workspace.h"
#include "worker/cuda_engine/device_kv_pages.h"
#include "worker/cuda_engine/sampling/device_sampler.h"
#include "worker/cuda_engine/weights/device_weights.h"
#include "worker/device/cuda_event.h"
#include "worker/engine/batch_builder.h"
#include "worker/engine/pooler.h"
#include "worker/engine/row_sampler.h"
#include "worker/grammar/step_masks.h"

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
              CudaStream* stream, NcclCollective* collective)
      : config_(config),
        shard_(shard),
        options_(options),
        stream_(stream),
        collective_(collective),
        workspace_(config, shard_, LimitsOf<T>(config, options)),
        batch_builder_({.page_size = options.page_size,
                        .tokens = options.max_step_tokens,
                        .sequences = options.max_sequences,
                        .logits_rows = options.max_logits_rows}),
        row_sampler_(config.vocab_size, options.max_logits_rows, pool),
        pooler_(config.hidden_size),
        masks_(options.grammars,
               {.max_spans = options.max_sequences,
                .vocab_size = static_cast<size_t>(config.vocab_size),
                .has_thread = options.has_mask_thread}) {
    for (Flight& flight : flights_) {
      flight.rows.reserve(options.max_sequences);
      flight.plan.spans.reserve(options.max_sequences);
      flight.host_rows.reserve(options.max_logits_rows);
      flight.places.reserve(options.max_logits_rows);
    }
  }

  // What is in flight ends, or is ended, before its memory is freed.
  ~TypedEngine() override {
    if (!is_busy_) return;
    if (collective_ != nullptr) collective_->Abort("its engine is gone");
    (void)stream_->device().MakeCurrent();
    (void)stream_->Synchronize();
    masks_.End();
  }

  // Before the first step.
  absl::Status Load(const TensorSource& tensors) {
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
                                       .collective = collective_});
    for (Flight& flight : flights_) {
      LOCKSTEP_ASSIGN_OR_RETURN(flight.has_run,
                                CudaEvent::Create(&stream_->device()));
    }
    return absl::OkStatus();
  }

  int max_steps_in_flight() const override { return kFlights; }

  absl::Status Launch(const StepPlan& plan) override {
    CHECK_LT(in_flight_, kFlights);
    const Flight* const before = in_flight_ == 0 ? nullptr : &flights_[oldest_];
    CHECK(before == nullptr || !before->is_hosts)
        << "step " << plan.step << " while the host has a part of the last";
    CHECK(before == nullptr || observer_ == nullptr)
        << "logits are shown of one step at a time";
    Flight& flight = flights_[(oldest_ + in_flight_) % kFlights];
    LOCKSTEP_RETURN_IF_ERROR(stream_->device().MakeCurrent());
    is_busy_ = true;
    ++in_flight_;
    batch_builder_.Build(plan);
    Describe(plan, &flight);
    masks_.Begin(plan);
    LOCKSTEP_RETURN_IF_ERROR(Enqueue(plan, before, &flight));
    return flight.has_run->Record(stream_->handle());
  }

  absl::Status Retire(StepResult* result) override {
    CHECK_GT(in_flight_, 0);
    LOCKSTEP_RETURN_IF_ERROR(stream_->device().MakeCurrent());
    const Flight& flight = flights_[oldest_];
    LOCKSTEP_RETURN_IF_ERROR(collective_ == nullptr
                                 ? flight.has_run->Synchronize()
                                 : collective_->Await(*flight.has_run));
    const absl::Status status = Finish(flight, result);
    if (flight.is_hosts) masks_.End();
    oldest_ = (oldest_ + 1) % kFlights;
    --in_flight_;
    is_busy_ = in_flight_ > 0;
    return status;
  }

  void set_logits_observer(LogitsObserver observer) override {
    observer_ = std::move(observer);
  }

 private:
  // A launched step, as far as its result is made of it. Sequences may end
  // before it has run, but for those that the host has a part of: that step is
  // the newest, and is retired before anything else happens to them.
  struct Flight {
    // Of each span, where in the ids its token is; -1: it samples none.
    std::vector<int> rows;
    bool is_hosts = false;  // in part
    StepPlan plan;          // without sequences, but of what the host has
    // Those that the host samples, and which of all rows they are.
    std::vector<LogitsRow> host_rows;
    std::vector<int> places;
    std::unique_ptr<CudaEvent> has_run;
  };

  static constexpr int kFlights = CudaWorkspace<T>::kFlights;

  // After the batch is built.
  void Describe(const StepPlan& plan, Flight* flight) {
    flight->rows.assign(plan.spans.size(), -1);
    const absl::Span<const LogitsRow> rows = batch_builder_.rows();
    for (size_t i = 0; i < rows.size(); ++i) {
      if (!rows[i].is_prompt) flight->rows[rows[i].span] = static_cast<int>(i);
    }
    flight->is_hosts =
        observer_ != nullptr ||
        std::any_of(plan.spans.begin(), plan.spans.end(), NeedsHost);
    flight->plan = plan;
    for (SequenceSpan& span : flight->plan.spans) {
      if (observer_ == nullptr && !NeedsHost(span)) span.sequence = nullptr;
    }
  }

  // Puts all of a step on the stream.
  absl::Status Enqueue(const StepPlan& plan, const Flight* before,
                       Flight* flight) {
    absl::Span<const int> rows_before;
    if (before != nullptr) rows_before = before->rows;
    LOCKSTEP_RETURN_IF_ERROR(workspace_.batch().Stage(
        plan, batch_builder_.input(), rows_before, stream_));
    const int rows = batch_builder_.rows().size();
    LOCKSTEP_RETURN_IF_ERROR(
        decoder_->Launch(workspace_.batch(), rows, pages_->layers()));
    LOCKSTEP_RETURN_IF_ERROR(ChooseTokens(plan, flight));
    return CopyHiddenStates(plan);
  }

  // Of the sampler's flights, and of the ids that come to the host.
  int NumberOf(const Flight& flight) const {
    return static_cast<int>(&flight - flights_);
  }

  // On the device, where the next step reads them; for the rest brings logits
  // to the host. The observer sees them before anything masks them.
  absl::Status ChooseTokens(const StepPlan& plan, Flight* flight) {
    const absl::Span<const LogitsRow> rows = batch_builder_.rows();
    uint32_t* const ids = workspace_.activations().best_ids;
    DeviceSampler& sampler = workspace_.sampler();
    const int number = NumberOf(*flight);
    for (size_t i = 0; observer_ && i < rows.size(); ++i) {
      LOCKSTEP_RETURN_IF_ERROR(CopyLogits(i));
    }
    LOCKSTEP_RETURN_IF_ERROR(sampler.Launch(
        number, plan, rows, {decoder_->logits(), decoder_->logits_stride()},
        ids, &masks_, stream_));
    flight->host_rows.clear();
    flight->places.clear();
    for (size_t i = 0; i < rows.size(); ++i) {
      if (sampler.Takes(number, static_cast<int>(i))) continue;
      CHECK(flight->plan.spans[rows[i].span].sequence != nullptr)
          << "the device has no room for what it must choose";
      flight->host_rows.push_back(rows[i]);
      flight->places.push_back(static_cast<int>(i));
      if (!observer_) LOCKSTEP_RETURN_IF_ERROR(CopyLogits(i));
    }
    if (rows.empty()) return absl::OkStatus();
    return stream_->CopyToHost(workspace_.host_ids(number), AddressOf(ids),
                               rows.size() * sizeof(uint32_t));
  }

  absl::Status CopyLogits(size_t row) {
    return stream_->CopyToHost(
        workspace_.host_logits() + row * config_.vocab_size,
        AddressOf(decoder_->logits() + row * decoder_->logits_stride()),
        config_.vocab_size * sizeof(float));
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

  // Of a step that has run.
  absl::Status Finish(const Flight& flight, StepResult* result) {
    if (observer_) ShowLogits(flight.plan);
    const auto logits_of = [&](int row, absl::Span<float> /*room*/) {
      return LogitsAt(flight.places[row]);
    };
    row_sampler_.Sample(flight.plan, flight.host_rows, logits_of, &masks_,
                        result);
    const int number = NumberOf(flight);
    workspace_.sampler().Finish(number, workspace_.host_ids(number), result);
    const auto hidden_states_of = [this](int first, int /*count*/) {
      return workspace_.host_hidden_states() +
             size_t{1} * first * config_.hidden_size;
    };
    return pooler_.Pool(flight.plan, hidden_states_of, result);
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
  NcclCollective* const collective_;  // null: of one rank
  std::unique_ptr<DeviceWeights> weights_;
  CudaWorkspace<T> workspace_;
  std::unique_ptr<DeviceKvPages<T>> pages_;
  std::unique_ptr<CudaDecoder<T>> decoder_;
  BatchBuilder batch_builder_;
  RowSampler row_sampler_;
  Pooler pooler_;
  StepMasks masks_;
  LogitsObserver observer_;

  Flight flights_[kFlights];
  int oldest_ = 0;
  int in_flight_ = 0;
  bool is_busy_ = false;  // the stream may be
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
    kernels::ThreadPool* pool, CudaStream* stream, NcclCollective* collective) {
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
        auto engine = std::make_unique<TypedEngine<T>>(
            model.config, shard, options, pool, stream, collective);
        LOCKSTEP_RETURN_IF_ERROR(engine->Load(*model.tensors));
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
