#include "frontend/gateway_metrics.h"

#include <absl/strings/str_cat.h>

#include "common/metrics/process_metrics.h"
#include "frontend/ledger/access_log.h"

namespace lockstep {
namespace {

using enum MetricType;

constexpr MetricInfo kMetrics[] = {
    {"lockstep_gateway_model_info", kGauge, "model_name",
     "1; the model served is in the label"},
    {"lockstep_gateway_http_connections", kGauge, "",
     "open HTTP connections, idle ones too"},
    {"lockstep_gateway_http_requests_total", kCounter, "route,code",
     "HTTP requests that ended, by route (none: there is no such path) and "
     "status (499: the client left before the answer)"},
    {"lockstep_gateway_grpc_requests_total", kCounter, "method,code",
     "calls of lockstep.v1.Inference that ended, by method and gRPC code"},
    {"lockstep_gateway_refused_keys_total", kCounter, "cause",
     "requests that were refused for their API key, over either protocol: "
     "there was none, or it is unknown"},
    {"lockstep_gateway_requests_in_flight", kGauge, "",
     "requests that count towards --max_inflight_requests"},
    {"lockstep_gateway_prompt_tokens_in_flight", kGauge, "",
     "tokens of their prompts, which count towards "
     "--max_inflight_prompt_tokens"},
    {"lockstep_gateway_open_streams", kGauge, "",
     "answers in progress, queued ones too"},
    {"lockstep_gateway_generations_total", kCounter, "code",
     "answers that ended, by gRPC code"},
    {"lockstep_gateway_refused_requests_total", kCounter, "reason",
     "those that ended badly before their first token, by the reason their "
     "clients were told"},
    {"lockstep_gateway_prompt_tokens_total", kCounter, "",
     "prompt tokens of answers that ended"},
    {"lockstep_gateway_cached_prompt_tokens_total", kCounter, "",
     "those of them that a group had cached"},
    {"lockstep_gateway_generation_tokens_total", kCounter, "",
     "tokens that came from groups"},
    {"lockstep_gateway_encode_seconds", kHistogram, "",
     "from a request's arrival until its tokens were sent to a group"},
    {"lockstep_gateway_tokenized_bytes_total", kCounter, "from",
     "text of chats that became tokens: encoded, or cached"},
    {"lockstep_gateway_time_to_first_token_seconds", kHistogram, "",
     "from a request's arrival to its first tokens"},
    {"lockstep_gateway_inter_token_latency_seconds", kHistogram, "",
     "from some tokens of an answer to the next; a client that reads slowly "
     "holds them up"},
    {"lockstep_gateway_request_latency_seconds", kHistogram, "",
     "from a request's arrival to its end"},
    {"lockstep_gateway_unknown_fields_total", kCounter, "field",
     "JSON fields that no schema here has; from the 65th name on together, as "
     "…"},
    {"lockstep_gateway_retries_total", kCounter, "",
     "requests sent to another group before their first token"},
    {"lockstep_gateway_refused_retries_total", kCounter, "",
     "requests that were not, since the budget of retries was used up"},
    {"lockstep_gateway_failovers_total", kCounter, "",
     "answers that another group went on with"},
    {"lockstep_gateway_lost_answers_total", kCounter, "",
     "answers that no group went on with"},
    {"lockstep_gateway_waiting_requests", kGauge, "",
     "requests and answers that wait for a group: there is none, or those "
     "there "
     "did not take them"},
    {"lockstep_gateway_group_waits_total", kCounter, "",
     "how often one waited as there was none"},
    {"lockstep_gateway_silent_groups_total", kCounter, "",
     "attempts that were ended as the group sent nothing in time"},
    {"lockstep_gateway_discovery_up", kGauge, "",
     "1 while looking for groups succeeds; else they stay as they were (1 "
     "without --worker_discovery)"},
    {"lockstep_gateway_group_ready", kGauge, "group",
     "1 while the group at this address takes requests"},
    {"lockstep_gateway_group_requests_total", kCounter, "group",
     "requests sent to the group, retries and failovers too"},
    {"lockstep_gateway_group_sequences", kGauge, "group",
     "sequences there, as it reported, and those sent since"},
    {"lockstep_gateway_group_waiting_tokens", kGauge, "group",
     "prompt tokens that wait to be computed there, those sent since too"},
    {"lockstep_gateway_group_kv_usage", kGauge, "group",
     "part of its KV pages that sequences hold, 0 to 1, as it reported"},
    {"lockstep_gateway_group_breaker_state", kGauge, "group",
     "its breaker: 0 closed, 1 half-open, 2 open"},
    {"lockstep_gateway_event_loop_lag_seconds", kHistogram, "thread",
     "how late an HTTP thread came to a timer that it has ten of a second; of "
     "gRPC's (grpc), how long a call took that asks for nothing"},
    {"lockstep_gateway_access_log_lines_total", kCounter, "result",
     "lines of the access log: written, dropped as the disk did not keep up, "
     "or "
     "withheld as there were too many of refused keys"},
};

void CollectRequests(const GatewayMeters& gateway, MetricWriter& writer) {
  for (const auto& [key, count] : gateway.ledger->counts("http")) {
    writer.Add("lockstep_gateway_http_requests_total", {key.first, key.second},
               count);
  }
  for (const auto& [key, count] : gateway.ledger->counts("grpc")) {
    writer.Add("lockstep_gateway_grpc_requests_total", {key.first, key.second},
               count);
  }
  for (const auto& [field, count] : gateway.openai->unknown_fields().counts()) {
    writer.Add("lockstep_gateway_unknown_fields_total", {field}, count);
  }
  writer.Add("lockstep_gateway_refused_keys_total", {"none"},
             gateway.access->without_key());
  writer.Add("lockstep_gateway_refused_keys_total", {"unknown"},
             gateway.access->with_unknown_key());
  const AccessLog* const log = gateway.ledger->log();
  if (log == nullptr) return;
  writer.Add("lockstep_gateway_access_log_lines_total", {"written"},
             log->written());
  writer.Add("lockstep_gateway_access_log_lines_total", {"dropped"},
             log->dropped());
  writer.Add("lockstep_gateway_access_log_lines_total", {"withheld"},
             gateway.ledger->withheld());
}

void CollectGenerations(Pipeline& pipeline, MetricWriter& writer) {
  writer.Add("lockstep_gateway_requests_in_flight", {},
             pipeline.inflight().number());
  writer.Add("lockstep_gateway_prompt_tokens_in_flight", {},
             pipeline.inflight().prompt_tokens());
  const GenerationMeter& meter = pipeline.meter();
  writer.Add("lockstep_gateway_open_streams", {}, meter.open());
  for (const auto& [code, count] : meter.ends()) {
    writer.Add("lockstep_gateway_generations_total", {code}, count);
  }
  for (const auto& [reason, count] : meter.refusals()) {
    writer.Add("lockstep_gateway_refused_requests_total", {reason}, count);
  }
  writer.Add("lockstep_gateway_prompt_tokens_total", {}, meter.prompt_tokens());
  writer.Add("lockstep_gateway_cached_prompt_tokens_total", {},
             meter.cached_tokens());
  writer.Add("lockstep_gateway_generation_tokens_total", {},
             meter.generated_tokens());
  writer.Add("lockstep_gateway_encode_seconds", {}, meter.encode());
  writer.Add("lockstep_gateway_time_to_first_token_seconds", {},
             meter.first_token());
  writer.Add("lockstep_gateway_inter_token_latency_seconds", {}, meter.token());
  writer.Add("lockstep_gateway_request_latency_seconds", {}, meter.total());
}

void CollectRouting(const GroupSet& groups, MetricWriter& writer) {
  const auto model = groups.Model();
  if (model.ok()) {
    writer.Add("lockstep_gateway_model_info", {model->name}, 1);
  }
  const RoutingCounters& counters = groups.counters();
  writer.Add("lockstep_gateway_retries_total", {}, counters.retries);
  writer.Add("lockstep_gateway_refused_retries_total", {},
             counters.refused_retries);
  writer.Add("lockstep_gateway_failovers_total", {}, counters.failovers);
  writer.Add("lockstep_gateway_lost_answers_total", {}, counters.lost_answers);
  writer.Add("lockstep_gateway_waiting_requests", {}, groups.waits().number());
  writer.Add("lockstep_gateway_group_waits_total", {}, counters.group_waits);
  writer.Add("lockstep_gateway_silent_groups_total", {},
             counters.silent_groups);
  for (const GroupSet::GroupStatus& group : groups.statuses()) {
    const auto add = [&](absl::string_view name, double value) {
      writer.Add(absl::StrCat("lockstep_gateway_group_", name), {group.address},
                 value);
    };
    add("ready", group.is_ready);
    add("requests_total", group.balance.requests);
    add("sequences", group.balance.view.sequences);
    add("waiting_tokens", group.balance.view.waiting_tokens);
    add("kv_usage", group.balance.view.kv_usage);
    add("breaker_state", static_cast<int>(group.balance.breaker));
  }
}

void CollectHttp(const http::Server& server, MetricWriter& writer) {
  writer.Add("lockstep_gateway_http_connections", {}, server.connections());
  int thread = 0;
  for (const Histogram* lag : server.thread_lags()) {
    writer.Add("lockstep_gateway_event_loop_lag_seconds",
               {absl::StrCat("http-", thread++)}, *lag);
  }
}

}  // namespace

std::vector<MetricInfo> GatewayMetrics() {
  return JoinMetrics({ProcessMetrics(), kMetrics});
}

void CollectGateway(const GatewayMeters& gateway, MetricWriter& writer) {
  CollectRequests(gateway, writer);
  CollectGenerations(*gateway.pipeline, writer);
  CollectRouting(*gateway.groups, writer);
  writer.Add("lockstep_gateway_discovery_up", {},
             gateway.discovery == nullptr || gateway.discovery->is_up());
  if (gateway.http != nullptr) CollectHttp(*gateway.http, writer);
  if (gateway.callback_lag != nullptr) {
    writer.Add("lockstep_gateway_event_loop_lag_seconds", {"grpc"},
               *gateway.callback_lag);
  }
}

void CollectTokenizerCache(const CachingTokenizer& tokenizer,
                           MetricWriter& writer) {
  writer.Add("lockstep_gateway_tokenized_bytes_total", {"encoded"},
             tokenizer.encoded_bytes());
  writer.Add("lockstep_gateway_tokenized_bytes_total", {"cached"},
             tokenizer.known_bytes());
}

}  // namespace lockstep
