#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "common/strict_json.h"

namespace {

int DepthOf(const nlohmann::json& value) {
  int depth = 0;
  if (!value.is_structured()) return depth;
  for (const auto& child : value) depth = std::max(depth, DepthOf(child));
  return depth + 1;
}

}  // namespace

// Whatever the text: an error, or a value that is not deep and that, written
// down, is read as the same; in the order of its keys too, and member by
// member.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto value = lockstep::ParseStrictJson(text, "fuzz.json");
  const auto ordered = lockstep::ParseOrderedJson(text, "fuzz.json");
  if (ordered.status() != value.status()) __builtin_trap();
  if (!value.ok()) return 0;
  if (nlohmann::json(*ordered) != *value) __builtin_trap();
  if (value->is_object()) {
    for (const auto& [key, member] : ordered->items()) {
      const auto alone = lockstep::ParseOrderedMember(text, key, "fuzz.json");
      if (!alone.ok() || *alone != member) __builtin_trap();
    }
  }
  if (DepthOf(*value) > 32) __builtin_trap();
  const auto again = lockstep::ParseStrictJson(value->dump(), "again.json");
  if (!again.ok() || *again != *value) __builtin_trap();
  return 0;
}
