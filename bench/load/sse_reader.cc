#include "bench/load/sse_reader.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

namespace lockstep::bench {

void SseReader::Read(absl::string_view bytes) {
  while (true) {
    const size_t end = bytes.find('\n');
    absl::StrAppend(&line_, bytes.substr(0, end));
    if (end == absl::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    absl::string_view line = absl::StripSuffix(line_, "\r");
    if (absl::ConsumePrefix(&line, "data:")) {
      on_data_(absl::StripPrefix(line, " "));
    }
    line_.clear();
  }
}

}  // namespace lockstep::bench
