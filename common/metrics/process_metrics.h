#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include "common/health/health_board.h"
#include "common/metrics/metric_writer.h"

namespace lockstep {

// What every program tells: what it is, how it is, and what it takes of its
// host, by the names that Prometheus' own libraries use.
absl::Span<const MetricInfo> ProcessMetrics();

// Of this process, from /proc. Any thread.
void CollectProcess(absl::string_view program, absl::string_view version,
                    const HealthBoard& health, MetricWriter& writer);

}  // namespace lockstep
