#include "common/metrics/reason_label.h"

#include "common/error_reason.h"

namespace lockstep {

absl::string_view ReasonLabel(const absl::Status& status) {
  const ErrorReasonEntry* const entry = ErrorReasonEntryOf(status);
  return entry == nullptr ? "OTHER" : entry->name;
}

}  // namespace lockstep
