#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>

#include "frontend/structured_output/gbnf.h"

// Any text is a grammar or is refused; one that is written anew is no GBNF.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto lark = lockstep::GbnfToLark(text);
  if (!lark.ok()) return 0;
  if (!lockstep::IsGbnf(text) || lark->empty()) __builtin_trap();
  return 0;
}
