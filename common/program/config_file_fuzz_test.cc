// Whatever is in a file, what is read of it can be written and read again.

#include <absl/strings/string_view.h>
#include <glog/logging.h>

#include <cstddef>
#include <cstdint>

#include "common/program/config_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view text(reinterpret_cast<const char*>(data), size);
  const auto entries = lockstep::ParseConfig(text, "file");
  if (!entries.ok()) return 0;
  for (const lockstep::ConfigEntry& entry : *entries) {
    // A plain value may have quotes within, which only a plain one can have.
    if (entry.value.find('"') != entry.value.npos) continue;
    const auto again = lockstep::ParseConfig(
        lockstep::FormatConfigLine(entry.name, entry.value), "file");
    CHECK(again.ok()) << again.status();
    CHECK_EQ(again->size(), 1);
    CHECK_EQ(again->front().name, entry.name);
    CHECK_EQ(again->front().value, entry.value);
  }
  return 0;
}
