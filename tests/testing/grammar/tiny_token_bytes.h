#pragma once

#include <absl/strings/string_view.h>

#include <cstdint>
#include <string>
#include <vector>

#include "worker/grammar/token_bytes.h"

namespace lockstep::testing {

// The tiny tokenizer's tokens, as a grammar sees them; <|im_end|> is kTinyEos.
TokenBytes MakeTinyTokenBytes();

inline constexpr uint32_t kTinyEos = 2;

// The id of each byte of a text.
std::vector<uint32_t> TinyIds(absl::string_view text);

// The text of ids, up to the first special one.
std::string TinyText(const std::vector<uint32_t>& ids);

}  // namespace lockstep::testing
