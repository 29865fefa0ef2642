#include <cstddef>
#include <cstdint>

#include "worker/checkpoint/safetensors_file.h"

// Whatever the bytes: an error or a file whose tensors lie inside.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file =
      lockstep::SafetensorsFile::Parse({data, size}, "fuzz.safetensors");
  if (!file.ok()) return 0;
  for (const auto& [name, tensor] : (*file)->tensors()) {
    const uint8_t* const begin = tensor.bytes.data();
    if (begin < data || begin + tensor.bytes.size() > data + size) {
      __builtin_trap();
    }
  }
  return 0;
}
