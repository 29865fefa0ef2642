#include <cstddef>
#include <cstdint>
#include <utility>

#include "worker/checkpoint/gguf_source.h"
#include "worker/model_spec/gguf_config.h"

// Whatever the bytes: an error, or a config and tensors that lie inside.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto file = lockstep::GgufFile::Parse({data, size}, "fuzz.gguf");
  if (!file.ok()) return 0;
  (void)lockstep::ConfigFromGguf(**file);
  const auto source = lockstep::GgufSource::Create(*std::move(file));
  if (!source.ok()) return 0;
  for (const std::string& name : (*source)->Names()) {
    const auto tensor = (*source)->Get(name);
    const uint8_t* const begin = tensor->bytes.data();
    if (begin < data || begin + tensor->bytes.size() > data + size) {
      __builtin_trap();
    }
  }
  return 0;
}
