#pragma once

#include <string>
#include <vector>

#include "frontend/output_parsing/output_format.h"

namespace lockstep::testing {

// What a model writes, and what it is: a line for each kind and each call,
//   thinks …
//   says …
//   calls NAME ID ARGUMENTS
//   0 of 1 whole   where not all calls are
// Tools f, g and get_weather are offered; ids are id0, id1, ….
struct OutputCase {
  OutputFormat format;
  std::string text;
  std::string expected;
  bool starts_in_reasoning = false;
  bool several_calls = true;
};

// That each is so in one piece, in bytes and in random pieces, whose seed is
// printed.
void ExpectOutputs(const std::vector<OutputCase>& cases);

}  // namespace lockstep::testing
