#include "tests/goldens/tensor_goldens.h"

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>

#include <utility>

#include "common/status_macros.h"
#include "tests/goldens/number_file.h"

namespace lockstep::goldens {
namespace {

absl::StatusOr<std::vector<uint32_t>> ReadIds(const NumberFile& file,
                                              const std::string& name) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto ids, file.Read<int32_t>(name));
  return std::vector<uint32_t>(ids.values.begin(), ids.values.end());
}

absl::StatusOr<GoldenPrompt> ReadPrompt(const NumberFile& file,
                                        const std::string& name) {
  GoldenPrompt prompt;
  prompt.name = name;
  LOCKSTEP_ASSIGN_OR_RETURN(prompt.ids, ReadIds(file, name + ".ids"));
  LOCKSTEP_ASSIGN_OR_RETURN(prompt.greedy, ReadIds(file, name + ".greedy"));
  LOCKSTEP_ASSIGN_OR_RETURN(auto margins, file.Read<float>(name + ".margin"));
  LOCKSTEP_ASSIGN_OR_RETURN(auto logits, file.Read<float>(name + ".logits"));
  if (logits.shape.size() != 2 || logits.shape[0] > prompt.ids.size() ||
      margins.values.size() != prompt.greedy.size()) {
    return absl::InvalidArgumentError(absl::StrCat(
        name, ": the shapes of ids, logits, greedy and margin do not fit"));
  }
  prompt.margins = std::move(margins.values);
  prompt.logits_rows = static_cast<int>(logits.shape[0]);
  prompt.logits = std::move(logits.values);
  return prompt;
}

}  // namespace

absl::Status ReadTensorGoldens(const std::string& path, GoldenCase* golden) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto file, NumberFile::Open(path));
  if (file->Has("max_context")) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto context,
                              file->Read<int32_t>("max_context"));
    golden->max_context = context.values.empty() ? 0 : context.values.front();
  }
  for (int i = 0; file->Has(absl::StrCat("p", i, ".ids")); ++i) {
    LOCKSTEP_ASSIGN_OR_RETURN(GoldenPrompt prompt,
                              ReadPrompt(*file, absl::StrCat("p", i)));
    golden->prompts.push_back(std::move(prompt));
  }
  if (golden->prompts.empty()) {
    return absl::NotFoundError(absl::StrCat(path, ": no prompt p0"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::goldens
