#include <cstddef>
#include <cstdint>

#include "tokenizer_service/gguf_tokenizer.h"

// Whatever the bytes: an error, or a tokenizer whose ids are those it decodes.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = lockstep::GgufFile::Parse({data, size}, "fuzz.gguf");
  if (!file.ok()) return 0;
  const auto tokenizer = lockstep::TokenizerFromGguf(**file);
  if (!tokenizer.ok()) return 0;
  const auto ids = (*tokenizer)->Encode("ab c <s>", true);
  if (ids.ok() && !(*tokenizer)->Decode(*ids, false).ok()) __builtin_trap();
  return 0;
}
