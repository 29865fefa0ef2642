#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>

namespace lockstep {

// INVALID_ARGUMENT unless `text` is UTF-8 of at most kMaxTextBytes; the
// sentence names `field` and the size or the offset of the first bad byte.
absl::Status CheckText(absl::string_view field, absl::string_view text);

}  // namespace lockstep
