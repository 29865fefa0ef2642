#include "worker/runtime/rank.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/time/clock.h>
#include <absl/time/time.h>
#include <glog/logging.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "common/status_macros.h"
#include "worker/collectives/collective_kind.h"
#include "worker/runtime/build_id.h"
#include "worker/runtime/host_identity.h"
#include "worker/runtime/host_limits.h"
#include "worker/runtime/model_facts.h"
#include "worker/runtime/rank_description.h"
#include "worker/runtime/rank_memory.h"
#include "worker/weights/model_weights.h"

namespace lockstep {
namespace {

constexpr char kNoHead[] =
    "the model's files have no output head, lm_head.weight, and config.json "
    "does not tie one to the embedding; it makes embeddings alone.";
constexpr int kLeastLogitsRows = 64;
// Every rank calls it as soon as it is welcome. NCCL first looks at how the
// GPUs are connected, which takes as long as it takes.
constexpr absl::Duration kMeetTimeout = absl::Seconds(20);
constexpr absl::Duration kTellEvery = absl::Seconds(10);

absl::Status CheckExpertParallel(const RankOptions& options,
                                 const ModelConfig& config) {
  if (!options.expert_parallel || config.experts.num_experts > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("--expert_parallel is true; the model ", options.model,
                   ", of ", config.architecture, ", has no experts."));
}

int MaxLogitsRows(const RankOptions& options) {
  return std::max(options.max_sequences, kLeastLogitsRows);
}

CudaEngineOptions GpuOptions(const RankOptions& options, int num_pages) {
  return {.num_pages = num_pages,
          .page_size = options.page_size,
          .max_step_tokens = options.max_step_tokens,
          .max_sequences = options.max_sequences,
          .max_logits_rows = MaxLogitsRows(options),
          .arithmetic = options.numerics.arithmetic};
}

// Of one rank's weights once packed.
int64_t WeightBytes(const RankOptions& options, const ModelFiles& model) {
  return PackedBytes(*model.tensors, model.config,
                     options.numerics.arithmetic) /
         options.size;
}

absl::StatusOr<int64_t> KvMemoryBytes(const RankOptions& options,
                                      const ModelFiles& model,
                                      const RankDevice& device) {
  if (options.kv_cache_memory_bytes > 0) return options.kv_cache_memory_bytes;
  if (options.num_pages > 0) return 0;  // it decides
  if (device.gpu != nullptr) return device.kv_memory_bytes;
  return DefaultKvMemory(UsableMemoryBytes(), options.local_ranks,
                         WeightBytes(options, model));
}

// Of one KV page. `gpu` may be null.
int64_t PageBytes(const RankOptions& options, const ModelFiles& model,
                  const Shard& shard, const GpuRank* gpu) {
  if (gpu != nullptr) {
    return gpu->PageBytes(model, shard, GpuOptions(options, /*num_pages=*/0));
  }
  return static_cast<int64_t>(ModelEngine::PageBytes(
      model.config, shard, options.page_size, options.numerics.kv_type));
}

KvCapacityInput CapacityOf(const RankOptions& options, const ModelFiles& model,
                           const ModelDefaults& defaults, const Shard& shard,
                           const GpuRank* gpu, int64_t memory_bytes) {
  return {.page_bytes = PageBytes(options, model, shard, gpu),
          .page_size = options.page_size,
          .num_pages = options.num_pages,
          .memory_bytes = memory_bytes,
          .max_sequences = options.max_sequences,
          .max_context = options.max_context,
          .usual_context = defaults.context,
          .model_max_context = model.config.max_context};
}

absl::StatusOr<ModelDefaults> DefaultsOf(const RankOptions& options,
                                         const ModelFiles& model) {
  const bool has_head = model.tensors->Get("lm_head.weight").ok();
  LOCKSTEP_ASSIGN_OR_RETURN(
      ModelDefaults defaults,
      ReadModelDefaults(options.model, model.config, has_head));
  if (!options.sampling_defaults) defaults.sampling = {};
  return defaults;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Rank>> Rank::Open(const RankOptions& asked) {
  RankOptions options = asked;
  LOCKSTEP_ASSIGN_OR_RETURN(
      ModelFiles model,
      OpenModel(options.model, options.max_context, options.weights));
  for (const auto& [file, digest] : model.content.of_file) {
    LOG(INFO) << "rank " << options.rank << ": the weights in " << file
              << " have the digest " << digest;
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckExpertParallel(options, model.config));
  LOCKSTEP_ASSIGN_OR_RETURN(ModelDefaults defaults, DefaultsOf(options, model));
  LOCKSTEP_ASSIGN_OR_RETURN(
      Shard shard,
      MakeShard(model.config, model.row_parallel_blocks, options.rank,
                options.size, options.expert_parallel));
  LOCKSTEP_ASSIGN_OR_RETURN(
      RankDevice device,
      ChooseDevice(options.device, options.local_index, model, shard,
                   options.numerics, GpuOptions(options, /*num_pages=*/0)));
  options.numerics = device.numerics;
  LOCKSTEP_ASSIGN_OR_RETURN(
      options.collective,
      CollectiveOn(device, options.size, options.collective));
  LOCKSTEP_ASSIGN_OR_RETURN(options.device.steps_in_flight,
                            StepsInFlightOn(device, options.device));
  LOCKSTEP_ASSIGN_OR_RETURN(const int64_t kv_memory_bytes,
                            KvMemoryBytes(options, model, device));
  std::unique_ptr<Rank> rank(new Rank(options, std::move(model),
                                      std::move(defaults), std::move(shard),
                                      std::move(device.gpu), kv_memory_bytes));
  LOCKSTEP_ASSIGN_OR_RETURN(rank->own_num_pages_, NumPages(rank->capacity_));
  LOCKSTEP_RETURN_IF_ERROR(rank->CheckMemory());
  rank->token_bytes_ = ReadTokenBytes(options.model);
  if (rank->token_bytes_.ok()) {
    rank->token_bytes_digest_ = rank->token_bytes_->MakeDigest();
    const Digest tokens = rank->token_bytes_->MakeTokensDigest();
    rank->tokens_digest_.assign(tokens.begin(), tokens.end());
  }
  return rank;
}

Rank::Rank(const RankOptions& options, ModelFiles model, ModelDefaults defaults,
           Shard shard, std::unique_ptr<GpuRank> gpu, int64_t kv_memory_bytes)
    : options_(options),
      model_(std::move(model)),
      defaults_(std::move(defaults)),
      shard_(std::move(shard)),
      gpu_(std::move(gpu)),
      capacity_(CapacityOf(options_, model_, defaults_, shard_, gpu_.get(),
                           kv_memory_bytes)),
      collective_({.kind = options_.collective,
                   .rank = options_.rank,
                   .size = options_.size,
                   .gpu = gpu_.get(),
                   .failed = options_.collective_failed}) {}

Rank::~Rank() = default;

// A GPU's own is counted where its pages are.
absl::Status Rank::CheckMemory() const {
  if (gpu_ != nullptr) return absl::OkStatus();
  const int64_t working_bytes = ModelEngine::WorkingBytes(
      model_.config, shard_, EngineOptions(own_num_pages_));
  const bool is_asked_for =
      options_.kv_cache_memory_bytes > 0 || options_.num_pages > 0;
  return CheckRankMemory(
      UsableMemoryBytes(), options_.local_ranks,
      {.weight_bytes = WeightBytes(options_, model_),
       .kv_bytes = is_asked_for ? own_num_pages_ * capacity_.page_bytes : 0,
       .working_bytes = working_bytes});
}

ModelEngine::Options Rank::EngineOptions(int num_pages) const {
  return {.num_pages = num_pages,
          .page_size = options_.page_size,
          .max_step_tokens = options_.max_step_tokens,
          .max_sequences = options_.max_sequences,
          .max_logits_rows = MaxLogitsRows(options_),
          .arithmetic = options_.numerics.arithmetic,
          .kv_type = options_.numerics.kv_type,
          .grammars = grammars_.get(),
          .has_mask_thread = has_free_core_};
}

absl::Status Rank::StartKernels() {
  const std::vector<int> cores = UsableCores();
  const int num_cores = cores.size();
  threads_ = options_.threads > 0
                 ? options_.threads
                 : std::max(1, num_cores / options_.local_ranks);
  const int all_threads = threads_ * options_.local_ranks;
  has_free_core_ = all_threads + options_.local_ranks <= num_cores;
  // Where the group leaves cores free, another one may run beside it.
  const bool pin =
      all_threads == num_cores && cores.back() - cores.front() == num_cores - 1;
  pool_ = std::make_unique<kernels::ThreadPool>(kernels::ThreadPool::Options{
      .num_threads = threads_,
      .first_core = pin ? cores.front() + options_.local_index * threads_ : -1,
      .oversubscribed = all_threads > num_cores});
  LOCKSTEP_ASSIGN_OR_RETURN(
      ops_, kernels::Ops::Create(options_.cpu_isa, pool_.get()));
  StartGrammars();
  return absl::OkStatus();
}

void Rank::StartGrammars() {
  const ModelConfig& config = model_.config;
  grammars_ = std::make_unique<GrammarStore>(
      std::move(token_bytes_),
      GrammarStore::Options{
          .vocab_size = static_cast<size_t>(config.vocab_size),
          .eos_token_ids = {config.eos_token_ids.begin(),
                            config.eos_token_ids.end()}});
}

absl::StatusOr<v1::Hello> Rank::hello() const {
  v1::Hello hello;
  hello.set_rank(options_.rank);
  hello.set_tensor_parallel_size(options_.size);
  LOCKSTEP_ASSIGN_OR_RETURN(*hello.mutable_build_id(), BuildId());
  // With --verify_weights damaged copies are told apart, too.
  const std::string& content = model_.content.all;
  hello.set_model_fingerprint(absl::StrCat(
      model_.fingerprint, content.empty() ? "" : " of the content ", content));
  v1::RankFlags& flags = *hello.mutable_flags();
  flags.set_page_size(options_.page_size);
  flags.set_num_pages(options_.num_pages);
  flags.set_max_step_tokens(options_.max_step_tokens);
  flags.set_max_sequences(options_.max_sequences);
  flags.set_max_context(options_.max_context > 0 ? options_.max_context
                                                 : defaults_.context);
  flags.set_arithmetic(options_.numerics.arithmetic_name());
  flags.set_kv_cache_type(options_.numerics.kv_type_name());
  flags.set_collective(CollectiveName(options_.collective));
  flags.set_expert_parallel(options_.expert_parallel);
  flags.set_device(gpu_ == nullptr ? "cpu" : "cuda");
  flags.set_steps_in_flight(options_.device.steps_in_flight);
  hello.set_num_pages(own_num_pages_);
  hello.set_process_id(getpid());
  hello.set_boot_id(BootId());
  hello.set_pid_namespace(PidNamespace());
  hello.set_host(HostName());
  hello.set_token_bytes_digest(token_bytes_digest_);
  *hello.mutable_collective_address() = collective_.address();
  return hello;
}

absl::Status Rank::Agree(int num_pages) {
  const ModelEngine::Options engine_options = EngineOptions(num_pages);
  scheduler_options_.num_pages = num_pages;
  scheduler_options_.page_size = engine_options.page_size;
  scheduler_options_.max_step_tokens = engine_options.max_step_tokens;
  scheduler_options_.max_sequences = engine_options.max_sequences;
  scheduler_options_.max_logits_rows = engine_options.max_logits_rows;
  scheduler_options_.steps_in_flight = options_.device.steps_in_flight;
  scheduler_options_.host_samples = gpu_ != nullptr;
  LOCKSTEP_ASSIGN_OR_RETURN(scheduler_options_.max_context,
                            MaxContext(capacity_, num_pages));
  return ValidateSchedulerOptions(scheduler_options_);
}

absl::Status Rank::OpenCollective(const std::string& host) {
  return collective_.Open(host);
}

absl::Status Rank::MeetRanks(const v1::CollectiveAddress& others) {
  const bool has_gpus = options_.collective == CollectiveKind::kNccl;
  LOCKSTEP_RETURN_IF_ERROR(collective_.Meet(
      others, has_gpus ? options_.group_timeout : kMeetTimeout));
  LOG(INFO) << "rank " << options_.rank << ": the group has formed";
  return absl::OkStatus();
}

absl::Status Rank::Load(const std::function<void(const std::string&)>& tell) {
  if (gpu_ != nullptr) {
    CudaEngineOptions options =
        GpuOptions(options_, scheduler_options_.num_pages);
    options.grammars = grammars_.get();
    options.has_mask_thread = has_free_core_;
    LOCKSTEP_ASSIGN_OR_RETURN(
        engine_, gpu_->MakeEngine(model_, shard_, options, pool_.get()));
    return absl::OkStatus();
  }
  absl::Time told = absl::Now();
  const auto on_layer = [&](int loaded, int layers) {
    if (tell == nullptr || absl::Now() - told < kTellEvery) return;
    told = absl::Now();
    tell(absl::StrCat(options_.model, ": ", loaded, " of ", layers, " layers"));
  };
  LOCKSTEP_ASSIGN_OR_RETURN(
      engine_, ModelEngine::Create(model_, shard_,
                                   EngineOptions(scheduler_options_.num_pages),
                                   &*ops_, collective_.get(), on_layer));
  return absl::OkStatus();
}

v1::ModelInfo Rank::model_info(const std::string& name) const {
  const ModelConfig& config = model_.config;
  v1::ModelInfo info;
  info.set_name(name);
  info.set_architecture(config.architecture);
  info.set_vocabulary_size(config.vocab_size);
  info.set_max_context_tokens(scheduler_options_.max_context);
  info.mutable_eos_token_ids()->Assign(config.eos_token_ids.begin(),
                                       config.eos_token_ids.end());
  if (config.bos_token_id.has_value()) {
    info.set_bos_token_id(*config.bos_token_id);
  }
  info.set_num_layers(config.num_layers);
  info.set_hidden_size(config.hidden_size);
  info.set_num_attention_heads(config.num_heads);
  info.set_num_key_value_heads(config.num_kv_heads);
  info.mutable_weight_types()->Assign(model_.weight_types.begin(),
                                      model_.weight_types.end());
  info.set_fingerprint(GenerationFingerprint(
      absl::StrCat(model_.fingerprint, gpu_ == nullptr ? "" : " on a GPU", " ",
                   defaults_.sampling.ToString()),
      options_.numerics,
      SumCuts(config, model_.row_parallel_blocks, options_.size,
              options_.expert_parallel)));
  if (model_.embedding.ok()) {
    *info.mutable_embedding() =
        EmbeddingInfoOf(*model_.embedding, config.hidden_size);
  } else {
    info.set_no_embedding(std::string(model_.embedding.status().message()));
  }
  if (!config.has_head) info.set_no_generation(kNoHead);
  *info.mutable_default_sampling() = SamplingParamsOf(defaults_.sampling);
  info.set_tokens_digest(tokens_digest_);
  return info;
}

std::vector<int> Rank::identical_sizes() const {
  return IdenticalSizes(model_.config, model_.row_parallel_blocks,
                        options_.size, options_.expert_parallel);
}

v1::ServerInfo Rank::server_info() const {
  const std::vector<int> identical = identical_sizes();
  v1::ServerInfo info;
  info.set_tensor_parallel_size(options_.size);
  info.mutable_identical_tensor_parallel_sizes()->Assign(identical.begin(),
                                                         identical.end());
  info.set_page_size_tokens(scheduler_options_.page_size);
  info.set_num_pages(scheduler_options_.num_pages);
  info.set_max_step_tokens(scheduler_options_.max_step_tokens);
  info.set_max_sequences(scheduler_options_.max_sequences);
  info.set_isa(gpu_ == nullptr ? ops_->isa() : gpu_->name());
  info.set_threads_per_rank(threads_);
  info.set_arithmetic(options_.numerics.arithmetic_name());
  info.set_kv_cache_type(options_.numerics.kv_type_name());
  info.set_collective(CollectiveName(options_.collective));
  return info;
}

std::string Rank::Description() const {
  const v1::ServerInfo server = server_info();
  const int64_t kv_tokens =
      int64_t{scheduler_options_.num_pages} * scheduler_options_.page_size;
  const std::string sampling = defaults_.sampling.ToString();
  return absl::StrCat(
      model_.config.architecture, " from ", options_.model, ", weights ",
      absl::StrJoin(model_.weight_types, "+"), ", tensor-parallel size ",
      options_.size, " (bit-identical sizes: ",
      absl::StrJoin(server.identical_tensor_parallel_sizes(), ", "),
      ShareText("; query heads", model_.config.num_heads, options_.size),
      options_.expert_parallel
          ? ShareText("; experts", model_.config.experts.num_experts,
                      options_.size)
          : "",
      "), ", server.collective(), " collectives, ", server.arithmetic(),
      " arithmetic, ", server.isa(), ", ", threads_, " threads a rank, ",
      server.kv_cache_type(), " KV cache of ", scheduler_options_.num_pages,
      " pages = ", kv_tokens,
      " tokens = ", (scheduler_options_.num_pages * capacity_.page_bytes) >> 20,
      " MiB a rank, context of ", scheduler_options_.max_context, " tokens",
      RopeText(model_.config),
      model_.config.has_head ? ""
                             : ", without an output head: embeddings alone",
      sampling.empty() ? "" : ", requests sample by default with ", sampling);
}

}  // namespace lockstep
