#include "tests/testing/http/scraped.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_split.h>
#include <gtest/gtest.h>

namespace lockstep::testing {

std::map<std::string, double> Scraped(absl::string_view text) {
  std::map<std::string, double> values;
  for (const absl::string_view line : absl::StrSplit(text, '\n')) {
    if (line.empty() || absl::StartsWith(line, "#")) continue;
    const size_t space = line.rfind(' ');
    double value = 0;
    const bool is_sample =
        space != line.npos && absl::SimpleAtod(line.substr(space + 1), &value);
    EXPECT_TRUE(is_sample) << line;
    if (!is_sample) continue;
    const std::string name(line.substr(0, space));
    EXPECT_TRUE(values.emplace(name, value).second) << name << " comes twice";
  }
  return values;
}

}  // namespace lockstep::testing
