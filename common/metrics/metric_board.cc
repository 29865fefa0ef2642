#include "common/metrics/metric_board.h"

#include <prometheus/text_serializer.h>

namespace lockstep {

MetricBoard::Registration MetricBoard::Register(Source source) {
  absl::MutexLock lock(&mutex_);
  sources_.push_back(std::move(source));
  return Registration(this, std::prev(sources_.end()));
}

void MetricBoard::Leave(std::list<Source>::iterator at) {
  absl::MutexLock lock(&mutex_);
  sources_.erase(at);
}

std::vector<prometheus::MetricFamily> MetricBoard::Collect() const {
  MetricWriter writer(table_);
  absl::MutexLock lock(&mutex_);
  for (const Source& source : sources_) source(writer);
  return writer.TakeFamilies();
}

std::string MetricBoard::Text() const {
  return prometheus::TextSerializer().Serialize(Collect());
}

}  // namespace lockstep
