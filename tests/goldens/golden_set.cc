#include "tests/goldens/golden_set.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "common/status_macros.h"
#include "tests/goldens/tensor_goldens.h"
#include "tests/goldens/text_goldens.h"

namespace lockstep::goldens {
namespace {

namespace fs = std::filesystem;

// Both engine and reference compute in float32; the weights, whatever their
// type, are the same numbers.
constexpr float kTensorRounding = 2e-4;

// Of one checkpoint folder NAME/, if it is one.
absl::Status AddCheckpoint(const fs::path& folder,
                           std::vector<GoldenCase>* cases) {
  for (const char* type : {"fp32", "bf16", "quantized"}) {
    const fs::path file =
        folder / absl::StrCat("goldens.", type, ".safetensors");
    if (!fs::exists(file)) continue;
    GoldenCase golden;
    golden.name = absl::StrCat(folder.filename().string(), " ", type);
    golden.model_path = folder / type;
    if (!fs::exists(golden.model_path)) golden.model_path += ".gguf";
    golden.rounding = kTensorRounding;
    LOCKSTEP_RETURN_IF_ERROR(ReadTensorGoldens(file, &golden));
    cases->push_back(std::move(golden));
  }
  return absl::OkStatus();
}

// Sorted, so that the order is the same everywhere.
std::vector<fs::path> Entries(const fs::path& folder) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    entries.push_back(entry.path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

}  // namespace

absl::StatusOr<std::vector<GoldenCase>> FindGoldens(const std::string& folder,
                                                    const std::string& models) {
  std::vector<GoldenCase> cases;
  fs::path root(folder);
  if (!root.has_filename()) root = root.parent_path();  // a slash at the end
  LOCKSTEP_RETURN_IF_ERROR(AddCheckpoint(root, &cases));
  for (const fs::path& parent : {root, root / "tiny"}) {
    for (const fs::path& entry : Entries(parent)) {
      LOCKSTEP_RETURN_IF_ERROR(AddCheckpoint(entry, &cases));
    }
  }
  for (const fs::path& entry : Entries(root)) {
    if (entry.extension() != ".json") continue;
    LOCKSTEP_ASSIGN_OR_RETURN(auto golden, ReadTextGoldens(entry, models));
    if (golden.has_value()) cases.push_back(*std::move(golden));
  }
  if (cases.empty()) {
    return absl::NotFoundError(
        absl::StrCat(folder,
                     ": no goldens; expected NAME/goldens.fp32.safetensors or "
                     "a JSON file of goldens in it"));
  }
  return cases;
}

}  // namespace lockstep::goldens
