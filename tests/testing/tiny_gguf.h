#pragma once

#include <string>

#include "tests/testing/gguf_writer.h"
#include "tests/testing/tiny_model.h"

namespace lockstep::testing {

// The model as a GGUF file; with the tiny tokenizer inside when vocab_size is
// its 512. The rows of q and k of a llama, mistral or smollm3 model are
// permuted as ggml has them. REQUIRES: rows are whole blocks of model.type.
//
//   WriteGguf(TinyModel(), ::testing::TempDir() + "tiny.gguf");
void WriteGguf(const TinyModel& model, const std::string& path);

// The same before it is written, for tests that add something bad.
GgufWriter MakeGguf(const TinyModel& model);

}  // namespace lockstep::testing
