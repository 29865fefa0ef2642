#include "bench/load/summary.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "bench/text_table.h"

namespace lockstep::bench {
namespace {

// The time in which requests were due.
double SpanOf(const LoadRun& run) {
  if (run.records.empty()) return 0;
  return run.seconds - run.records.front().due_s;
}

struct Figure {
  std::string name;
  std::function<double(const Summary&)> of;
  std::string format;  // of a double
};

std::vector<Figure> Figures() {
  std::vector<Figure> figures = {
      {"requests", [](const Summary& s) { return double(s.requests); }, "%.0f"},
      {"answered", [](const Summary& s) { return double(s.answered); }, "%.0f"},
      {"offered /s", [](const Summary& s) { return s.offered_rate; }, "%.2f"},
      {"answered /s", [](const Summary& s) { return s.answered_rate; }, "%.2f"},
      {"tokens /s", [](const Summary& s) { return s.tokens_rate; }, "%.1f"},
      {"within the SLO /s", [](const Summary& s) { return s.goodput_rate; },
       "%.2f"},
      {"within the SLO %",
       [](const Summary& s) { return 100 * s.goodput_share; }, "%.1f"},
  };
  const std::vector<std::pair<std::string, Histogram Summary::*>> durations = {
      {"first token", &Summary::first_token},
      {"between tokens", &Summary::inter_token},
      {"whole answer", &Summary::whole}};
  for (const auto& [name, histogram] : durations) {
    for (const double share : {0.5, 0.9, 0.99, 0.999}) {
      figures.push_back({absl::StrFormat("%s ms p%g", name, 100 * share),
                         [histogram = histogram, share](const Summary& s) {
                           return 1e3 * (s.*histogram).QuantileS(share);
                         },
                         "%.1f"});
    }
    figures.push_back({name + " ms max",
                       [histogram = histogram](const Summary& s) {
                         return 1e3 * (s.*histogram).most_s();
                       },
                       "%.1f"});
  }
  return figures;
}

std::string Change(double before, double after) {
  if (before == 0) return "";
  return absl::StrFormat("%+.1f %%", 100 * (after / before - 1));
}

std::string Format(const std::string& format, double value) {
  return absl::StrFormat(*absl::ParsedFormat<'f'>::New(format), value);
}

}  // namespace

bool Keeps(const Record& record, const Slo& slo) {
  return record.ok() && record.tokens > 0 &&
         record.first_token_s() <= slo.first_token_s &&
         record.inter_token_s() <= slo.inter_token_s;
}

Summary Summarize(const LoadRun& run, const Slo& slo) {
  Summary summary;
  summary.label = run.label;
  int64_t tokens = 0, kept = 0;
  for (const Record& record : run.records) {
    ++summary.requests;
    tokens += record.tokens;
    kept += Keeps(record, slo);
    if (!record.ok()) {
      ++summary.errors[record.error];
      continue;
    }
    ++summary.answered;
    if (record.tokens > 0) summary.first_token.Record(record.first_token_s());
    summary.whole.Record(record.whole_s());
  }
  summary.inter_token = run.inter_token;
  const double span = SpanOf(run);
  if (span <= 0) return summary;
  const double due_span = run.records.back().due_s - run.records.front().due_s;
  summary.offered_rate = due_span > 0 ? (summary.requests - 1) / due_span : 0;
  summary.answered_rate = summary.answered / span;
  summary.tokens_rate = tokens / span;
  summary.goodput_rate = kept / span;
  summary.goodput_share = static_cast<double>(kept) / summary.requests;
  return summary;
}

std::vector<Summary> SummarizeEach(const std::vector<LoadRun>& runs,
                                   const Slo& slo) {
  std::vector<Summary> summaries;
  for (const LoadRun& run : runs) summaries.push_back(Summarize(run, slo));
  return summaries;
}

std::vector<std::vector<std::string>> ToRows(
    const std::vector<Summary>& summaries) {
  std::vector<std::vector<std::string>> rows = {{""}};
  std::map<std::string, int64_t> errors;
  for (const Summary& summary : summaries) {
    rows[0].push_back(summary.label);
    errors.insert(summary.errors.begin(), summary.errors.end());
  }
  if (summaries.size() == 2) rows[0].push_back("change");
  std::vector<Figure> figures = Figures();
  for (const auto& [error, number] : errors) {
    figures.insert(figures.begin() + 2,
                   {error,
                    [error = error](const Summary& s) {
                      const auto found = s.errors.find(error);
                      return found == s.errors.end() ? 0.0 : found->second;
                    },
                    "%.0f"});
  }
  for (const Figure& figure : figures) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(figure.name);
    for (const Summary& summary : summaries) {
      row.push_back(Format(figure.format, figure.of(summary)));
    }
    if (summaries.size() == 2) {
      row.push_back(Change(figure.of(summaries[0]), figure.of(summaries[1])));
    }
  }
  return rows;
}

std::string ToText(const Slo& slo) {
  return absl::StrCat("The SLO: first token within ", slo.first_token_s * 1e3,
                      " ms, ", slo.inter_token_s * 1e3,
                      " ms between tokens on average.");
}

std::string ToText(const std::vector<Summary>& summaries, const Slo& slo) {
  TextTable table;
  for (auto& row : ToRows(summaries)) table.Add(std::move(row));
  return absl::StrCat(table.ToText(), ToText(slo), "\n");
}

}  // namespace lockstep::bench
