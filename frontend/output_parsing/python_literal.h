#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <string>

#include "frontend/output_parsing/json_scanner.h"

namespace lockstep {

// Reads a literal of Python (The Python Language Reference, "Literals" and
// "Displays") from `text` at *at, after white space, and appends it to `json`
// as JSON: strings of both quotes with their escapes, numbers, True, False,
// None and JSON's own words for them, lists, tuples and dictionaries with keys
// that are strings or numbers. On kWhole *at is behind it.
//
//   std::string json;
//   size_t at = 0;
//   ScanPythonLiteral("{'a': (1, None)}", &at, &json);  // {"a": [1, null]}
//
// Nested at most JsonScanner::kMaxDepth deep. Numbers that JSON has not, such
// as 0x10 or nan, are kBroken.
Scan ScanPythonLiteral(absl::string_view text, size_t* at, std::string* json);

// An identifier, with dots in it; kMore at the end of the text.
Scan ScanPythonName(absl::string_view text, size_t* at, std::string* name);

}  // namespace lockstep
