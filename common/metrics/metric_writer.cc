#include "common/metrics/metric_writer.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <glog/logging.h>

#include <limits>

namespace lockstep {
namespace {

prometheus::MetricType ToPrometheus(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return prometheus::MetricType::Counter;
    case MetricType::kGauge:
      return prometheus::MetricType::Gauge;
    case MetricType::kHistogram:
      return prometheus::MetricType::Histogram;
  }
  LOG(FATAL) << "no type of a metric";
}

absl::string_view NameOf(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    case MetricType::kHistogram:
      return "histogram";
  }
  LOG(FATAL) << "no type of a metric";
}

std::vector<std::string> LabelNames(const MetricInfo& info) {
  return absl::StrSplit(info.labels, ',', absl::SkipEmpty());
}

}  // namespace

std::vector<MetricInfo> JoinMetrics(
    std::initializer_list<absl::Span<const MetricInfo>> parts) {
  std::vector<MetricInfo> all;
  for (const auto& part : parts)
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::string MetricsAsMarkdown(absl::Span<const MetricInfo> table) {
  std::string lines = "| name | type | labels | |\n|---|---|---|---|\n";
  for (const MetricInfo& info : table) {
    const auto quoted = [](std::string* out, const std::string& label) {
      absl::StrAppend(out, "`", label, "`");
    };
    absl::StrAppend(&lines, "| `", info.name, "` | ", NameOf(info.type), " | ",
                    absl::StrJoin(LabelNames(info), ", ", quoted), " | ",
                    info.help, " |\n");
  }
  return lines;
}

MetricWriter::MetricWriter(absl::Span<const MetricInfo> table)
    : table_(table), families_(table.size()) {
  for (size_t i = 0; i < table.size(); ++i) {
    families_[i].name = std::string(table[i].name);
    families_[i].help = std::string(table[i].help);
    families_[i].type = ToPrometheus(table[i].type);
    CHECK(indices_.emplace(table[i].name, i).second)
        << "twice in the table: " << table[i].name;
  }
}

void MetricWriter::Add(absl::string_view name, LabelValues labels,
                       double value) {
  const size_t index = IndexOf(name);
  prometheus::ClientMetric& metric = AddMetric(index, labels);
  switch (table_[index].type) {
    case MetricType::kCounter:
      metric.counter.value = value;
      return;
    case MetricType::kGauge:
      metric.gauge.value = value;
      return;
    case MetricType::kHistogram:
      LOG(FATAL) << name << " is a histogram";
  }
}

void MetricWriter::Add(absl::string_view name, LabelValues labels,
                       const Histogram& histogram) {
  const size_t index = IndexOf(name);
  CHECK(table_[index].type == MetricType::kHistogram) << name;
  prometheus::ClientMetric::Histogram& out = AddMetric(index, labels).histogram;
  const Histogram::Snapshot snapshot = histogram.Read();
  out.sample_sum = snapshot.sum;
  for (size_t i = 0; i < snapshot.counts.size(); ++i) {
    out.sample_count += snapshot.counts[i];
    out.bucket.push_back(
        {.cumulative_count = out.sample_count,
         .upper_bound = i < histogram.bounds().size()
                            ? histogram.bounds()[i]
                            : std::numeric_limits<double>::infinity()});
  }
}

prometheus::ClientMetric& MetricWriter::AddMetric(size_t index,
                                                  LabelValues labels) {
  prometheus::ClientMetric metric;
  const std::vector<std::string> names = LabelNames(table_[index]);
  CHECK_EQ(names.size(), labels.size()) << table_[index].name;
  auto name = names.begin();
  for (const absl::string_view value : labels) {
    metric.label.push_back({*name++, std::string(value)});
  }
  families_[index].metric.push_back(std::move(metric));
  return families_[index].metric.back();
}

size_t MetricWriter::IndexOf(absl::string_view name) const {
  const auto found = indices_.find(name);
  CHECK(found != indices_.end()) << name << " is in no table of metrics";
  return found->second;
}

}  // namespace lockstep
