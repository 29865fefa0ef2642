#include "bench/serving/serving_report.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include "bench/spread.h"
#include "bench/text_table.h"

namespace lockstep::bench {
namespace {

// All runs of one side together.
struct Side {
  std::vector<double> tokens_per_s;
  std::vector<double> first_token_s;
  std::vector<double> inter_token_s;
  std::vector<double> step_s;  // the engine's own
};

void Append(const std::vector<double>& more, std::vector<double>* all) {
  all->insert(all->end(), more.begin(), more.end());
}

Side Served(const ServingReport& report) {
  Side side;
  for (const ServingResult& run : report.served) {
    side.tokens_per_s.push_back(run.tokens / run.seconds);
    Append(run.first_token_s, &side.first_token_s);
    Append(run.inter_token_s, &side.inter_token_s);
  }
  return side;
}

Side EngineAlone(const ServingReport& report) {
  Side side;
  for (const RunResult& run : report.engine) {
    side.tokens_per_s.push_back(run.tokens_per_s);
    Append(run.first_token_s, &side.first_token_s);
    Append(run.inter_token_s, &side.inter_token_s);
    Append(run.step_s, &side.step_s);
  }
  return side;
}

void AddTo(TextTable* table, const std::string& name, const Side& side) {
  const Spread rate = SpreadOf(side.tokens_per_s);
  table->Add({name, absl::StrFormat("%.1f", rate.median), RangeToText(rate),
              PercentilesToText(side.first_token_s),
              PercentilesToText(side.inter_token_s),
              PercentilesToText(side.step_s)});
}

nlohmann::json ToJson(const Side& side) {
  nlohmann::json json = {
      {"tokens_per_s", ToJson(SpreadOf(side.tokens_per_s))},
      {"first_token_ms", PercentilesToJson(side.first_token_s)},
      {"inter_token_ms", PercentilesToJson(side.inter_token_s)}};
  if (!side.step_s.empty()) json["step_ms"] = PercentilesToJson(side.step_s);
  return json;
}

}  // namespace

std::string ToText(const ServingReport& report) {
  TextTable table;
  table.Add({"", "tokens/s", "min-max", "first token ms p50 / p99",
             "inter-token ms p50 / p99", "step ms p50 / p99"});
  if (!report.served.empty()) AddTo(&table, "over gRPC", Served(report));
  if (!report.engine.empty()) {
    AddTo(&table, "engine alone", EngineAlone(report));
  }
  const Traffic& traffic = report.traffic;
  return absl::StrCat(traffic.clients, " clients, ", traffic.rounds,
                      " requests each of ", traffic.prompt_tokens, " + ",
                      traffic.output_tokens, " tokens, ",
                      traffic.stagger.count(), " ms apart\n", table.ToText());
}

nlohmann::json ToJson(const ServingReport& report) {
  const Traffic& traffic = report.traffic;
  nlohmann::json json = {{"clients", traffic.clients},
                         {"requests_a_client", traffic.rounds},
                         {"prompt_tokens", traffic.prompt_tokens},
                         {"output_tokens", traffic.output_tokens}};
  if (!report.served.empty()) json["served"] = ToJson(Served(report));
  if (!report.engine.empty()) json["engine"] = ToJson(EngineAlone(report));
  return json;
}

}  // namespace lockstep::bench
