#include "bench/load/html_report.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <utility>

#include "bench/load/svg_plot.h"

namespace lockstep::bench {
namespace {

constexpr char kHead[] = R"(<!doctype html>
<html lang=en><meta charset=utf-8>
<meta name=viewport content='width=device-width'>
<title>Load</title>
<style>
body { font: 14px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 84rem; padding: 0 1rem; color: #222 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
td, th { padding: .15rem .9rem; text-align: right; border-bottom: 1px solid #eee }
td:first-child, th:first-child { text-align: left; padding-left: 0 }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(30rem, 1fr)); gap: 1.5rem; margin: 2rem 0 }
svg { width: 100%; font-size: 12px; fill: #555 }
.title { font-size: 14px; font-weight: 600; fill: #222 }
.grid { stroke: #e6e6e6 } .line, .dots { fill: none; stroke-width: 2; stroke-linejoin: round }
.dots { stroke-width: 4; stroke-linecap: round; opacity: .5 }
code { font-size: 12px; overflow-wrap: anywhere }
</style>
<h1>Load</h1>
)";

constexpr int kQuantiles = 200;

using OfSummary = std::function<const Histogram&(const Summary&)>;

// Which part of the requests took how long at most.
Plot Distribution(const std::string& title,
                  const std::vector<Summary>& summaries, const OfSummary& of) {
  Plot plot = {.title = title,
               .x_label = "milliseconds",
               .y_label = "% of them within",
               .x_is_logarithmic = true};
  for (const Summary& summary : summaries) {
    Series& series = plot.series.emplace_back();
    series.name = summary.label;
    const Histogram& histogram = of(summary);
    for (int k = 0; histogram.count() > 0 && k <= kQuantiles; ++k) {
      const double share = static_cast<double>(k) / kQuantiles;
      series.points.push_back({1e3 * histogram.QuantileS(share), 100 * share});
    }
  }
  return plot;
}

Plot FirstTokens(const std::vector<LoadRun>& runs) {
  Plot plot = {.title = "First token of each request, from when it was due",
               .x_label = "due, seconds from the start",
               .y_label = "milliseconds",
               .kind = Plot::Kind::kDots};
  for (const LoadRun& run : runs) {
    Series& series = plot.series.emplace_back();
    series.name = run.label;
    for (const Record& record : run.records) {
      if (record.ok() && record.tokens > 0) {
        series.points.push_back({record.due_s, 1e3 * record.first_token_s()});
      }
    }
  }
  return plot;
}

// How many were due and not yet answered.
Plot InProgress(const std::vector<LoadRun>& runs) {
  Plot plot = {.title = "Requests in progress",
               .x_label = "seconds from the start",
               .y_label = "requests"};
  for (const LoadRun& run : runs) {
    std::map<double, int> changes;
    for (const Record& record : run.records) {
      ++changes[record.due_s];
      --changes[record.end_s];
    }
    Series& series = plot.series.emplace_back();
    series.name = run.label;
    int number = 0;
    for (const auto& [at_s, change] : changes) {
      series.points.push_back({at_s, static_cast<double>(number)});
      number += change;
      series.points.push_back({at_s, static_cast<double>(number)});
    }
  }
  return plot;
}

// Requests due and answers that ended, in each second.
Plot Rates(const std::vector<LoadRun>& runs) {
  Plot plot = {.title = "Answers that ended",
               .x_label = "seconds from the start",
               .y_label = "a second"};
  for (const LoadRun& run : runs) {
    Series& series = plot.series.emplace_back();
    series.name = run.label;
    std::vector<int> ended(static_cast<size_t>(run.seconds) + 1);
    for (const Record& record : run.records) {
      const auto second = static_cast<size_t>(std::max(0.0, record.end_s));
      if (record.ok() && second < ended.size()) ++ended[second];
    }
    for (size_t i = 0; i < ended.size(); ++i) {
      series.points.push_back({i + 0.5, static_cast<double>(ended[i])});
    }
  }
  return plot;
}

std::string ToTable(const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<table>\n";
  const char* cell = "th";
  for (const std::vector<std::string>& row : rows) {
    absl::StrAppend(&html, "<tr>");
    for (const std::string& text : row) {
      absl::StrAppendFormat(&html, "<%s>%s", cell, Escape(text));
    }
    absl::StrAppend(&html, "\n");
    cell = "td";
  }
  return html + "</table>\n";
}

}  // namespace

std::string ToHtml(const std::vector<LoadRun>& runs,
                   const std::vector<Summary>& summaries, const Slo& slo) {
  std::string html = kHead;
  for (const LoadRun& run : runs) {
    absl::StrAppendFormat(&html, "<p><b>%s</b> <code>%s</code>\n",
                          Escape(run.label), Escape(run.options.dump()));
  }
  absl::StrAppend(&html, ToTable(ToRows(summaries)), "<p>", ToText(slo),
                  "\n<main>\n");
  for (const Plot& plot :
       {Distribution(
            "First token", summaries,
            [](const Summary& s) -> const Histogram& { return s.first_token; }),
        Distribution(
            "Between tokens", summaries,
            [](const Summary& s) -> const Histogram& { return s.inter_token; }),
        Distribution(
            "Whole answer", summaries,
            [](const Summary& s) -> const Histogram& { return s.whole; }),
        FirstTokens(runs), InProgress(runs), Rates(runs)}) {
    absl::StrAppend(&html, ToSvg(plot));
  }
  return html + "</main>\n";
}

}  // namespace lockstep::bench
