#include "bench/engine_report.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <functional>
#include <utility>

#include "bench/text_table.h"

namespace lockstep::bench {
namespace {

constexpr double kMiB = 1 << 20;

using Number = std::function<double(const RunResult&)>;
using Numbers = std::vector<double> RunResult::*;

Spread SpreadOfRuns(const EngineRow& row, const Number& number) {
  std::vector<double> values;
  for (const RunResult& run : row.runs) values.push_back(number(run));
  return SpreadOf(std::move(values));
}

Spread TokensPerSecond(const EngineRow& row) {
  return SpreadOfRuns(row,
                      [](const RunResult& run) { return run.tokens_per_s; });
}

double RoofTokensPerSecond(const EngineRow& row) {
  return SpreadOfRuns(
             row, [](const RunResult& run) { return run.roof_tokens_per_s; })
      .median;
}

// Of all runs together.
std::vector<double> OfAllRuns(const EngineRow& row, Numbers numbers) {
  std::vector<double> all;
  for (const RunResult& run : row.runs) {
    all.insert(all.end(), (run.*numbers).begin(), (run.*numbers).end());
  }
  return all;
}

std::vector<std::string> Cells(const EngineRow& row, bool has_rival) {
  if (row.runs.empty()) return {row.workload, row.skipped};
  const Spread ours = TokensPerSecond(row);
  const double roof = RoofTokensPerSecond(row);
  std::vector<std::string> cells = {
      row.workload,
      absl::StrFormat("%.1f", ours.median),
      RangeToText(ours),
      absl::StrFormat("%.0f", roof),
      absl::StrFormat("%.0f%%", 100 * ours.median / roof),
      row.runs.front().bound};
  if (has_rival) {
    const Spread rival = SpreadOf(row.rival_tokens_per_s);
    cells.push_back(absl::StrFormat("%.1f", rival.median));
    cells.push_back(RangeToText(rival));
    cells.push_back(absl::StrFormat("%.2f", ours.median / rival.median));
  }
  cells.push_back(PercentilesToText(OfAllRuns(row, &RunResult::step_s)));
  cells.push_back(PercentilesToText(OfAllRuns(row, &RunResult::first_token_s)));
  cells.push_back(PercentilesToText(OfAllRuns(row, &RunResult::inter_token_s)));
  return cells;
}

Spread LoadSpread(const EngineReport& report, double LoadResult::*seconds) {
  std::vector<double> values;
  for (const LoadResult& load : report.loads) values.push_back(load.*seconds);
  return SpreadOf(std::move(values));
}

std::string LoadToText(const EngineReport& report) {
  const Spread load = LoadSpread(report, &LoadResult::load_s);
  const Spread token = LoadSpread(report, &LoadResult::first_token_s);
  const LoadResult& first = report.loads.front();
  return absl::StrFormat(
      "load: %.2f s (%.2f-%.2f), to the first token %.2f s (%.2f-%.2f)\n"
      "memory: %.0f MiB resident, %.0f MiB of them not of files; the weights "
      "are %.0f MiB as stored, the rest %.0f MiB\n",
      load.median, load.least, load.most, token.median, token.least, token.most,
      first.resident_bytes / kMiB, first.anonymous_bytes / kMiB,
      report.weight_bytes / kMiB,
      (first.resident_bytes - report.weight_bytes) / kMiB);
}

nlohmann::json ToJson(const EngineRow& row) {
  nlohmann::json json = {{"workload", row.workload}};
  if (row.runs.empty()) {
    json["skipped"] = row.skipped;
    return json;
  }
  const Spread ours = TokensPerSecond(row);
  const double roof = RoofTokensPerSecond(row);
  json["tokens_per_s"] = ToJson(ours);
  json["roof_tokens_per_s"] = roof;
  json["share_of_roof"] = ours.median / roof;
  json["bound"] = row.runs.front().bound;
  json["computed_tokens"] = row.runs.front().computed_tokens;
  json["step_ms"] = PercentilesToJson(OfAllRuns(row, &RunResult::step_s));
  if (!row.runs.front().first_token_s.empty()) {
    json["first_token_ms"] =
        PercentilesToJson(OfAllRuns(row, &RunResult::first_token_s));
    json["inter_token_ms"] =
        PercentilesToJson(OfAllRuns(row, &RunResult::inter_token_s));
  }
  if (!row.rival_tokens_per_s.empty()) {
    const Spread rival = SpreadOf(row.rival_tokens_per_s);
    json["rival_tokens_per_s"] = ToJson(rival);
    json["ratio"] = ours.median / rival.median;
  }
  return json;
}

}  // namespace

nlohmann::json ToJson(const Ceilings& ceilings) {
  return {{"threads", ceilings.threads},
          {"fp32_operations_per_s", ceilings.fp32},
          {"bf16_operations_per_s", ceilings.bf16},
          {"int16_operations_per_s", ceilings.int16},
          {"int8_operations_per_s", ceilings.int8},
          {"dram_bytes_per_s", ceilings.dram_read},
          {"l3_bytes_per_s", ceilings.l3_read}};
}

std::string ToText(const EngineReport& report) {
  bool has_rival = false;
  for (const EngineRow& row : report.rows) {
    has_rival = has_rival || !row.rival_tokens_per_s.empty();
  }
  TextTable table;
  std::vector<std::string> head = {"workload", "tokens/s", "min-max",
                                   "roof",     "of roof",  "bound"};
  if (has_rival) {
    for (const char* word : {"rival", "min-max", "ratio"}) head.push_back(word);
  }
  for (const char* word : {"step ms p50 / p99", "first token ms p50 / p99",
                           "inter-token ms p50 / p99"}) {
    head.push_back(word);
  }
  table.Add(head);
  for (const EngineRow& row : report.rows) table.Add(Cells(row, has_rival));
  return absl::StrCat(report.description, "\nceilings of ",
                      ToText(report.ceilings), "\n",
                      report.loads.empty() ? "" : LoadToText(report),
                      report.rows.empty() ? "" : table.ToText());
}

nlohmann::json ToJson(const EngineReport& report) {
  nlohmann::json json = {{"model", report.model},
                         {"description", report.description},
                         {"ceilings", ToJson(report.ceilings)},
                         {"weight_bytes", report.weight_bytes},
                         {"kv_position_bytes", report.kv_position_bytes},
                         {"workloads", nlohmann::json::array()}};
  for (const EngineRow& row : report.rows) {
    json["workloads"].push_back(ToJson(row));
  }
  if (!report.loads.empty()) {
    json["load"] = {{"load_s", ToJson(LoadSpread(report, &LoadResult::load_s))},
                    {"first_token_s",
                     ToJson(LoadSpread(report, &LoadResult::first_token_s))},
                    {"resident_bytes", report.loads.front().resident_bytes},
                    {"anonymous_bytes", report.loads.front().anonymous_bytes}};
  }
  return json;
}

}  // namespace lockstep::bench
