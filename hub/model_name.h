#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <optional>
#include <string>

namespace lockstep {

// A model of a hub, as --model names it:
//   owner/name                      a folder with config.json and weights
//   owner/name:file.gguf            one of its GGUF files
//   owner/name:Q4_K_M               the one whose name ends in -Q4_K_M.gguf
//   owner/name@revision[:file]      as a branch, a tag or a commit has it
struct HubModel {
  std::string repo = {};  // owner/name
  std::string revision = "main";
  std::string file = {};  // may be empty

  std::string ToString() const;  // as above
};

// Nothing where `model` is a path: it is there, begins with "/", "." or "~", or
// has not the form of a hub's name. INVALID_ARGUMENT where all but the revision
// or the file has, and says what is wrong with it.
absl::StatusOr<std::optional<HubModel>> ParseHubModel(const std::string& model);

// The form of a commit: 40 hexadecimal digits.
bool IsCommit(absl::string_view revision);

// Whether a hub's path of a file stays below its folder: no part of it is
// empty, "." or "..", and it has printable ASCII alone.
bool IsSafeFileName(absl::string_view path);

// What a model is called where nothing else is said: a file by its name without
// ".gguf", a folder by its own, one of a hub, or of a hub's cache, by
// owner/name.
std::string DefaultModelName(const std::string& model);

}  // namespace lockstep
