#pragma once

#include <absl/strings/string_view.h>

namespace lockstep {

// docs/openapi.json: what requests over HTTP may hold and how they are
// answered, for programs. Part of this one; valid for ever.
absl::string_view OpenApiDocument();

}  // namespace lockstep
