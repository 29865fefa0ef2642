#pragma once

#include <absl/status/statusor.h>

#include <string>

#include "common/security/tls_identity.h"

namespace lockstep {

// What the binary `tokenizer` is told, checked.
struct TokenizerOptions {
  std::string model;          // a folder, a GGUF file or a hub's owner/name
  std::string chat_template;  // a file, before the model's; empty: none
  std::string listen;         // host:port
  std::string health_listen;  // host:port; empty: no port of its own
  int threads = 0;            // that work on text
  TlsFiles tls;

  std::string ToString() const;
};

// From the command line, the environment and a file: see ParseProgramFlags. The
// error is one sentence that names the flag. Sets gflags' globals, so once a
// process.
absl::StatusOr<TokenizerOptions> ParseTokenizerOptions(int argc, char** argv);

}  // namespace lockstep
