#include "tokenizer_service/tokenizer_factory.h"

#include <filesystem>
#include <system_error>

#include "tokenizer_service/gguf_tokenizer.h"
#include "tokenizer_service/tokenizer_folder.h"

namespace lockstep {

absl::StatusOr<std::unique_ptr<Tokenizer>> OpenTokenizer(
    const std::string& path, const std::optional<std::string>& chat_template,
    std::vector<std::string>* notes) {
  std::error_code ignored;  // what is no folder is opened, and fails, as a file
  if (std::filesystem::is_directory(path, ignored)) {
    return OpenTokenizerFolder(path, chat_template, notes);
  }
  return OpenGgufTokenizer(path, chat_template);
}

}  // namespace lockstep
