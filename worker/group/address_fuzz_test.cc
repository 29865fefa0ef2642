#include <absl/strings/ascii.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "worker/group/address.h"

// Whatever the text: an error that names the flag, or a host and a port of it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto address = lockstep::ParseHostPort(text, "listen");
  if (!address.ok()) {
    const absl::string_view sentence = address.status().message();
    if (sentence.find("--listen") == absl::string_view::npos) __builtin_trap();
    return 0;
  }
  if (address->host.empty()) __builtin_trap();
  if (text.find(address->host) == absl::string_view::npos) __builtin_trap();
  const absl::string_view digits = text.substr(text.rfind(':') + 1);
  if (!std::all_of(digits.begin(), digits.end(), absl::ascii_isdigit)) {
    __builtin_trap();
  }
  return 0;
}
