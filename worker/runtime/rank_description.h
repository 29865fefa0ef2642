#pragma once

#include <absl/strings/string_view.h>

#include <string>

#include "worker/model_spec/model_config.h"

namespace lockstep {

// Parts of the line that says what a rank serves.

// How many of `count` things each rank holds: "; query heads 2+3+3" of
// "; query heads".
std::string ShareText(absl::string_view what, int count, int size);

// What --max_context has made of a rope that follows it; "" of another.
std::string RopeText(const ModelConfig& config);

}  // namespace lockstep
