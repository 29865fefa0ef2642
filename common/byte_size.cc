#include "common/byte_size.h"

#include <absl/strings/ascii.h>
#include <absl/strings/numbers.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <limits>

namespace lockstep {

std::optional<int64_t> ParseByteSize(absl::string_view text) {
  constexpr struct {
    const char* suffix;
    int shift;
  } kUnits[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
  int shift = 0;
  for (const auto& unit : kUnits) {
    if (absl::ConsumeSuffix(&text, unit.suffix)) {
      shift = unit.shift;
      break;
    }
  }
  // SimpleAtoi would let signs and spaces pass.
  if (!std::all_of(text.begin(), text.end(), absl::ascii_isdigit)) {
    return std::nullopt;
  }
  int64_t number = 0;
  if (!absl::SimpleAtoi(text, &number) ||
      number > std::numeric_limits<int64_t>::max() >> shift) {
    return std::nullopt;
  }
  return number << shift;
}

}  // namespace lockstep
