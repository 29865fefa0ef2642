#include <absl/strings/ascii.h>
#include <absl/strings/string_view.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "frontend/discovery/endpoint_slices.h"
#include "frontend/discovery/line_splitter.h"

namespace {

constexpr size_t kMostBytes = 4096;

void Check(const lockstep::EndpointSlices& slices) {
  const std::vector<std::string> addresses = slices.Addresses();
  if (!std::is_sorted(addresses.begin(), addresses.end())) __builtin_trap();
  if (std::adjacent_find(addresses.begin(), addresses.end()) !=
      addresses.end()) {
    __builtin_trap();
  }
  for (const char c : slices.version()) {
    if (!absl::ascii_isalnum(c)) __builtin_trap();
  }
}

}  // namespace

// The first line is a list, the others are events, and the stream comes in
// pieces of as many bytes as its first one says.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const size_t piece_bytes = size_t{data[0]} + 1;
  absl::string_view stream(reinterpret_cast<const char*>(data) + 1, size - 1);
  lockstep::EndpointSlices slices;
  lockstep::LineSplitter lines(kMostBytes);
  bool has_list = false;
  while (!stream.empty()) {
    const absl::string_view piece = stream.substr(0, piece_bytes);
    stream.remove_prefix(piece.size());
    const absl::Status status = lines.Put(piece, [&](absl::string_view line) {
      if (line.size() > kMostBytes) __builtin_trap();
      const std::string version = slices.version();
      const absl::Status taken =
          has_list ? slices.TakeEvent(line) : slices.TakeList(line);
      if (!taken.ok() && slices.version() != version) __builtin_trap();
      has_list = true;
      Check(slices);
      return absl::OkStatus();
    });
    if (!status.ok()) return 0;
  }
  return 0;
}
