#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

namespace lockstep {

// What is answered without an API key, so that probes and scrapers need none.
// All else needs one where there are keys; docs/security.md has the table.
struct OpenRoute {
  absl::string_view path;
  absl::string_view why;
};

absl::Span<const OpenRoute> OpenRoutes();

// Of an HTTP path.
bool IsOpenRoute(absl::string_view path);

}  // namespace lockstep
