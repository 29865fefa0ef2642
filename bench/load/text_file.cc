#include "bench/load/text_file.h"

#include <absl/strings/str_cat.h>

#include <fstream>
#include <memory>

#include "common/mapped_file.h"
#include "common/status_macros.h"

namespace lockstep::bench {

absl::StatusOr<std::string> ReadTextFile(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  return std::string(file->text());
}

absl::Status WriteTextFile(const std::string& path, absl::string_view text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (file) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("cannot write ", path, "."));
}

}  // namespace lockstep::bench
