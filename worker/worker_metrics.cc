#include "worker/worker_metrics.h"

#include <absl/strings/str_cat.h>

#include "common/metrics/process_metrics.h"

namespace lockstep {
namespace {

using enum MetricType;

// vLLM numbers the engines of a server; a group is one.
constexpr char kEngine[] = "0";

constexpr char kModel[] = "model_name,engine";

constexpr MetricInfo kMetrics[] = {
    {"vllm:num_requests_running", kGauge, kModel,
     "sequences in the last step's batch"},
    {"vllm:num_requests_waiting", kGauge, kModel,
     "sequences that wait for their first step, or to be computed again"},
    {"vllm:kv_cache_usage_perc", kGauge, kModel,
     "part of the KV pages that sequences hold, 0 to 1"},
    {"vllm:cache_config_info", kGauge,
     "model_name,engine,block_size,num_gpu_blocks",
     "1; tokens of a page and pages, on whatever device, are in the labels"},
    {"vllm:num_preemptions_total", kCounter, kModel,
     "sequences that lost their pages to others"},
    {"vllm:prefix_cache_queries_total", kCounter, kModel,
     "prompt tokens looked up in the prefix cache"},
    {"vllm:prefix_cache_hits_total", kCounter, kModel,
     "prompt tokens found there"},
    {"vllm:prompt_tokens_total", kCounter, kModel,
     "prompt tokens of requests that were scheduled, cached ones too"},
    {"vllm:generation_tokens_total", kCounter, kModel, "tokens sampled"},
    {"vllm:request_success_total", kCounter,
     "model_name,engine,finished_reason",
     "choices that ended: stop, length or abort"},
    {"vllm:iteration_tokens_total", kHistogram, kModel,
     "tokens computed in a step"},
    {"vllm:time_to_first_token_seconds", kHistogram, kModel,
     "from a request's arrival to its first token"},
    {"vllm:inter_token_latency_seconds", kHistogram, kModel,
     "from one token of a choice to the next"},
    {"vllm:request_time_per_output_token_seconds", kHistogram, kModel,
     "the same, averaged over a choice"},
    {"vllm:e2e_request_latency_seconds", kHistogram, kModel,
     "from a request's arrival to its end"},
    {"vllm:request_queue_time_seconds", kHistogram, kModel,
     "from a request's arrival to its first step"},
    {"vllm:request_inference_time_seconds", kHistogram, kModel,
     "from its first step to its last token"},
    {"vllm:request_prefill_time_seconds", kHistogram, kModel,
     "from its first step to its first token"},
    {"vllm:request_decode_time_seconds", kHistogram, kModel,
     "from its first token to its last"},
    {"vllm:request_prompt_tokens", kHistogram, kModel,
     "prompt tokens of a request"},
    {"vllm:request_generation_tokens", kHistogram, kModel,
     "tokens sampled for a choice"},
    {"lockstep_worker_ranks", kGauge, "",
     "ranks of the group, while it is whole"},
    {"lockstep_worker_kv_pages", kGauge, "state",
     "KV pages: free, cached (held by the prefix cache alone) or held by "
     "sequences"},
    {"lockstep_worker_waiting_tokens", kGauge, "",
     "tokens of waiting sequences that are to be computed"},
    {"lockstep_worker_open_streams", kGauge, "",
     "requests the group is not done with"},
    {"lockstep_worker_requests_total", kCounter, "outcome",
     "requests: accepted or refused and, of those accepted, completed, "
     "client_cancelled, deadline, abort_call, slow_reader, shutdown or failed"},
    {"lockstep_worker_refused_requests_total", kCounter, "reason",
     "those refused, by the reason their clients were told"},
    {"lockstep_worker_not_finite_total", kCounter, "",
     "choices that ended since the model gave them no finite logit, or an "
     "embedding that is not finite"},
    {"lockstep_worker_step_seconds", kHistogram, "rank",
     "a step, from its frame to its end"},
    {"lockstep_worker_step_stage_seconds_total", kCounter, "rank,stage",
     "time that steps spent in waits_for_frame, plans, waits_for_digest and "
     "executes"},
    {"lockstep_worker_digest_checks_total", kCounter, "rank",
     "steps whose plan the rank agreed on; one it does not agree on ends the "
     "group"},
    {"lockstep_worker_collectives_total", kCounter, "rank,kind",
     "exchanges of tensors: all_reduce or all_gather"},
    {"lockstep_worker_heartbeats_total", kCounter, "rank,peer",
     "heartbeats that have come from each rank this one hears"},
};

void CollectOutcomes(const Admission& admission, MetricWriter& writer) {
  const v1::RequestCounts counts = admission.counts();
  const auto add = [&writer](absl::string_view outcome, uint64_t count) {
    writer.Add("lockstep_worker_requests_total", {outcome}, count);
  };
  add("accepted", counts.accepted());
  add("refused", counts.refused());
  add("completed", counts.completed());
  add("client_cancelled", counts.client_cancelled());
  add("deadline", counts.deadline());
  add("abort_call", counts.abort_call());
  add("slow_reader", counts.slow_reader());
  add("shutdown", counts.shutdown());
  add("failed", counts.failed());
  for (const auto& [reason, count] : admission.refusals()) {
    writer.Add("lockstep_worker_refused_requests_total", {reason}, count);
  }
}

void CollectPages(const GroupMeters& group, const v1::Load& load,
                  MetricWriter& writer) {
  // Before the first step all are free.
  const int total = group.scheduler.num_pages;
  const int free = load.step() == 0 ? total : load.free_pages();
  const int held = total - free - static_cast<int>(load.cached_pages());
  writer.Add("lockstep_worker_kv_pages", {"free"}, free);
  writer.Add("lockstep_worker_kv_pages", {"cached"}, load.cached_pages());
  writer.Add("lockstep_worker_kv_pages", {"held"}, held);
  writer.Add("vllm:kv_cache_usage_perc", {group.model_name, kEngine},
             1.0 * held / total);
  writer.Add("vllm:cache_config_info",
             {group.model_name, kEngine,
              absl::StrCat(group.scheduler.page_size), absl::StrCat(total)},
             1);
}

void CollectRequests(const std::string& model, const RequestMeters& requests,
                     MetricWriter& writer) {
  const auto add = [&](absl::string_view name, const auto& value) {
    writer.Add(name, {model, kEngine}, value);
  };
  add("vllm:prompt_tokens_total", requests.prompted);
  add("vllm:prefix_cache_queries_total", requests.prompted);
  add("vllm:prefix_cache_hits_total", requests.cached);
  add("vllm:generation_tokens_total", requests.generated);
  add("vllm:time_to_first_token_seconds", requests.first_token);
  add("vllm:inter_token_latency_seconds", requests.token);
  add("vllm:request_time_per_output_token_seconds", requests.mean_token);
  add("vllm:e2e_request_latency_seconds", requests.total);
  add("vllm:request_queue_time_seconds", requests.queued);
  add("vllm:request_inference_time_seconds", requests.computed);
  add("vllm:request_prefill_time_seconds", requests.prefill);
  add("vllm:request_decode_time_seconds", requests.decode);
  add("vllm:request_prompt_tokens", requests.prompt_tokens);
  add("vllm:request_generation_tokens", requests.generated_tokens);
  const auto add_ended = [&](absl::string_view reason, uint64_t count) {
    writer.Add("vllm:request_success_total", {model, kEngine, reason}, count);
  };
  add_ended("stop", requests.stopped);
  add_ended("length", requests.cut);
  add_ended("abort", requests.aborted);
}

}  // namespace

std::vector<MetricInfo> WorkerMetrics() {
  return JoinMetrics({ProcessMetrics(), kMetrics});
}

void CollectRank(const RankMeters& rank, MetricWriter& writer) {
  const std::string name = absl::StrCat(rank.rank);
  writer.Add("lockstep_worker_step_seconds", {name}, rank.steps->steps());
  writer.Add("lockstep_worker_digest_checks_total", {name},
             rank.steps->agreed());
  const auto add_stage = [&](absl::string_view label, v1::StepStage stage) {
    writer.Add("lockstep_worker_step_stage_seconds_total", {name, label},
               rank.steps->SecondsIn(stage));
  };
  add_stage("waits_for_frame", v1::WAITS_FOR_FRAME);
  add_stage("plans", v1::PLANS);
  add_stage("waits_for_digest", v1::WAITS_FOR_DIGEST);
  add_stage("executes", v1::EXECUTES);
  writer.Add("lockstep_worker_collectives_total", {name, "all_reduce"},
             rank.collective->num_all_reduces());
  writer.Add("lockstep_worker_collectives_total", {name, "all_gather"},
             rank.collective->num_all_gathers());
  for (const auto& [peer, count] : rank.heartbeats->Read()) {
    writer.Add("lockstep_worker_heartbeats_total", {name, absl::StrCat(peer)},
               count);
  }
}

void CollectGroup(const GroupMeters& group, MetricWriter& writer) {
  const v1::Load load = group.board->load();
  const MetricWriter::LabelValues model = {group.model_name, kEngine};
  writer.Add("vllm:num_requests_running", model, load.running_sequences());
  writer.Add("vllm:num_requests_waiting", model, load.waiting_sequences());
  writer.Add("vllm:num_preemptions_total", model, group.board->preemptions());
  writer.Add("vllm:iteration_tokens_total", model, group.steps->tokens());
  writer.Add("lockstep_worker_ranks", {}, group.ranks);
  writer.Add("lockstep_worker_waiting_tokens", {}, load.waiting_tokens());
  writer.Add("lockstep_worker_not_finite_total", {}, group.board->not_finite());
  writer.Add("lockstep_worker_open_streams", {}, group.router->num_live());
  CollectPages(group, load, writer);
  CollectRequests(group.model_name, *group.requests, writer);
  CollectOutcomes(*group.admission, writer);
}

}  // namespace lockstep
