#include <cstddef>
#include <cstdint>

#include "common/gguf_file.h"

// Whatever the bytes: an error or a file whose strings and tensors lie inside.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = lockstep::GgufFile::Parse({data, size}, "fuzz.gguf");
  if (!file.ok()) return 0;
  for (const auto& [name, info] : (*file)->tensors()) {
    if (info.offset >= size) __builtin_trap();
  }
  for (const char* key : {"general.architecture", "words"}) {
    const auto* value = (*file)->Find(key);
    if (value == nullptr) continue;
    if (const auto* words = std::get_if<lockstep::GgufStrings>(value)) {
      for (const auto& word : *words) {
        if (word.data() + word.size() >
            reinterpret_cast<const char*>(data) + size) {
          __builtin_trap();
        }
      }
    }
  }
  return 0;
}
