#include "common/metrics/reason_label.h"

#include <string>

#include "common/error_reason.h"

namespace lockstep {

absl::string_view ReasonLabel(const absl::Status& status) {
  const std::string reason = ErrorReasonOf(WithDefaultReason(status));
  for (const ErrorReasonEntry& entry : ErrorReasons()) {
    if (entry.name == reason) return entry.name;
  }
  return "OTHER";
}

}  // namespace lockstep
