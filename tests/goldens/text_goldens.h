#pragma once

#include <absl/status/statusor.h>

#include <optional>
#include <string>

#include "tests/goldens/golden_case.h"

namespace lockstep::goldens {

// Reads a file such as smollm2_goldens.json. Nothing where the file is JSON but
// holds no goldens; INVALID_ARGUMENT names the file and what is wrong.
// `models`: see FindGoldens.
absl::StatusOr<std::optional<GoldenCase>> ReadTextGoldens(
    const std::string& path, const std::string& models);

}  // namespace lockstep::goldens
