#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>
#include <prometheus/metric_family.h>

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "common/metrics/histogram.h"

namespace lockstep {

enum class MetricType { kCounter, kGauge, kHistogram };

// A line of the table of all metrics that a program has.
struct MetricInfo {
  absl::string_view name;
  MetricType type;
  absl::string_view labels;  // their names, with commas; may be empty
  absl::string_view help;
};

// Joins the tables of a program's parts.
std::vector<MetricInfo> JoinMetrics(
    std::initializer_list<absl::Span<const MetricInfo>> parts);

// The table as docs/metrics.md has it: a line of Markdown a metric.
std::string MetricsAsMarkdown(absl::Span<const MetricInfo> table);

// What metrics say at one time, in the order of a table. Only what stands in it
// can be written, with the labels that stand there.
//
//   MetricWriter writer(table);
//   writer.Add("lockstep_worker_kv_pages", {"free"}, load.free_pages());
//   prometheus::TextSerializer().Serialize(writer.TakeFamilies());
//
// Used by one thread.
class MetricWriter {
 public:
  using LabelValues = std::initializer_list<absl::string_view>;

  // `table` must outlive this.
  explicit MetricWriter(absl::Span<const MetricInfo> table);

  // REQUIRES: the table has `name`, with as many labels, of that type.
  void Add(absl::string_view name, LabelValues labels, double value);
  void Add(absl::string_view name, LabelValues labels,
           const Histogram& histogram);

  // All of the table, also those that nobody wrote. Once, at the end.
  std::vector<prometheus::MetricFamily> TakeFamilies() {
    return std::move(families_);
  }

 private:
  prometheus::ClientMetric& AddMetric(size_t index, LabelValues labels);
  size_t IndexOf(absl::string_view name) const;

  const absl::Span<const MetricInfo> table_;
  std::map<absl::string_view, size_t> indices_;  // of the table, by name
  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace lockstep
