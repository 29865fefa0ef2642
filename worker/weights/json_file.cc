#include "worker/weights/json_file.h"

#include <absl/strings/string_view.h>

#include "common/mapped_file.h"
#include "common/status_macros.h"
#include "common/strict_json.h"

namespace lockstep {

absl::StatusOr<nlohmann::json> ReadJsonFile(const std::string& path) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, MappedFile::Open(path));
  const auto bytes = file->bytes();
  return ParseStrictJson(
      absl::string_view(reinterpret_cast<const char*>(bytes.data()),
                        bytes.size()),
      path);
}

}  // namespace lockstep
