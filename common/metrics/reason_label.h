#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

namespace lockstep {

// Why something failed, as a label: the reason's name in docs/errors.md, and
// "OTHER" where there is none or another build made it up. So the number of
// labels is bounded. REQUIRES: !status.ok().
absl::string_view ReasonLabel(const absl::Status& status);

}  // namespace lockstep
