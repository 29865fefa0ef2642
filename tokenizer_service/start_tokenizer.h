#pragma once

#include <absl/status/statusor.h>

#include <memory>
#include <string>

#include "common/health/health_board.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// The tokenizer of a program's flags --model, of which a hub's text is
// downloaded, and --chat_template, a file or empty. `health` has what goes on,
// the log a line for each contradiction among the model's files. Blocks; the
// error names the flag or the file.
absl::StatusOr<std::unique_ptr<Tokenizer>> StartTokenizer(
    const std::string& model, const std::string& chat_template_file,
    HealthBoard* health);

}  // namespace lockstep
