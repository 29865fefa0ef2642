#include "worker/checkpoint/text_part.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <optional>
#include <utility>

#include "common/status_macros.h"

namespace lockstep {
namespace {

// Absent where the tensor is none of the language part.
std::optional<std::string> NameInTextPart(absl::string_view name) {
  if (absl::ConsumePrefix(&name, "language_model.")) return std::string(name);
  if (absl::ConsumePrefix(&name, "model.language_model.")) {
    return absl::StrCat("model.", name);
  }
  if (name == "lm_head.weight") return std::string(name);
  return std::nullopt;
}

}  // namespace

TextPart::TextPart(std::unique_ptr<TensorSource> whole)
    : whole_(std::move(whole)) {
  for (const std::string& name : whole_->Names()) {
    const auto of_text = NameInTextPart(name);
    if (of_text.has_value()) name_in_whole_[*of_text] = name;
  }
}

absl::StatusOr<Tensor> TextPart::Get(absl::string_view name) const {
  const auto found = name_in_whole_.find(name);
  if (found == name_in_whole_.end()) {
    return absl::NotFoundError(absl::StrCat(path(), " has no tensor ", name,
                                            " in its language part."));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(Tensor tensor, whole_->Get(found->second));
  tensor.name = std::string(name);
  return tensor;
}

std::vector<std::string> TextPart::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, in_whole] : name_in_whole_) names.push_back(name);
  return names;
}

const std::string& TextPart::FileOf(absl::string_view name) const {
  const auto found = name_in_whole_.find(name);
  return found == name_in_whole_.end() ? whole_->path()
                                       : whole_->FileOf(found->second);
}

}  // namespace lockstep
