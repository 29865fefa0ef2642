#include "bench/rival.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>

#include <cstddef>
#include <cstdio>
#include <string>

namespace lockstep::bench {

absl::StatusOr<double> RunRival(absl::string_view command,
                                absl::string_view workload,
                                absl::string_view model) {
  const std::string line = absl::StrReplaceAll(
      command, {{"{workload}", workload}, {"{model}", model}});
  FILE* pipe = popen(line.c_str(), "r");
  if (pipe == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rival: \"", line, "\" could not be started."));
  }
  std::string output;
  char buffer[512];
  size_t size;
  while ((size = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0) {
    output.append(buffer, size);
  }
  const int status = pclose(pipe);
  double tokens_per_second = 0;
  if (status != 0 || !absl::SimpleAtod(output, &tokens_per_second) ||
      !(tokens_per_second > 0)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rival: \"", line, "\" ended with status ", status,
                     " and printed \"", absl::StripAsciiWhitespace(output),
                     "\"; it must print one number, tokens a second."));
  }
  return tokens_per_second;
}

}  // namespace lockstep::bench
