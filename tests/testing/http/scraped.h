#pragma once

#include <absl/strings/string_view.h>

#include <map>
#include <string>

namespace lockstep::testing {

// The values of a text that Prometheus could scrape, by what stands before
// them: `name`, or `name{label="value"}`. A line that is none fails the test.
std::map<std::string, double> Scraped(absl::string_view text);

}  // namespace lockstep::testing
