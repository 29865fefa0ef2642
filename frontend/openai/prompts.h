#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "frontend/generation/spec.h"

namespace lockstep::openai {

inline constexpr char kAnyPrompt[] =
    "a string, a list of token ids, or a list of either";

// The prompts of a field: a string, token ids, or a list of up to `most` of
// either, each of them called FIELD[i] in errors.
absl::StatusOr<std::vector<PromptSpec>> ReadPrompts(const std::string& field,
                                                    const nlohmann::json& value,
                                                    bool add_special_tokens,
                                                    size_t most);

}  // namespace lockstep::openai
