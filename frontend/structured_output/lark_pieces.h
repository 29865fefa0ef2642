#pragma once

#include <absl/strings/string_view.h>

#include <nlohmann/json.hpp>
#include <string>

// Pieces of a grammar in Lark's syntax, with the additions of llguidance (its
// docs/syntax.md). Pure functions.
namespace lockstep {

// "…", with escapes.
std::string LarkText(absl::string_view text);

// /…/, of what Rust's regular expressions are; anchors at the ends of the whole
// say nothing and are left out.
std::string LarkRegex(absl::string_view regex);

// %json {…}, with white space that has an end. REQUIRES: an object.
std::string LarkJson(nlohmann::ordered_json schema);

}  // namespace lockstep
