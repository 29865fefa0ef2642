#pragma once

#include <absl/status/status.h>

#include "tests/goldens/golden_case.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep::goldens {

// Whether the tokenizer makes the prompt's text of its messages and its ids of
// its text, as far as these are known. DATA_LOSS says where they part.
absl::Status CheckPromptIds(const GoldenPrompt& prompt,
                            const Tokenizer& tokenizer);

}  // namespace lockstep::goldens
