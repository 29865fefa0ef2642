#include "worker/checkpoint/text_part.h"

#include <absl/status/status.h>
#include <absl/strings/escaping.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/strip.h>

#include <algorithm>
#include <utility>

#include "common/status_macros.h"

namespace lockstep {
namespace {

constexpr char kPrefix[] = "model.";

std::optional<std::string> NameInVisionModel(absl::string_view name) {
  if (absl::ConsumePrefix(&name, "language_model.")) return std::string(name);
  if (absl::ConsumePrefix(&name, "model.language_model.")) {
    return absl::StrCat(kPrefix, name);
  }
  if (name == "lm_head.weight") return std::string(name);
  return std::nullopt;
}

// Of a tensor of the decoder, as its own class names it.
bool IsOfBase(absl::string_view name) {
  return absl::StartsWith(name, "embed_tokens.") ||
         absl::StartsWith(name, "layers.") || absl::StartsWith(name, "norm.");
}

std::optional<std::string> NameInBase(absl::string_view name) {
  return IsOfBase(name) ? absl::StrCat(kPrefix, name) : std::string(name);
}

bool HasPrefix(absl::string_view name) {
  return absl::ConsumePrefix(&name, kPrefix) && IsOfBase(name);
}

}  // namespace

absl::StatusOr<std::unique_ptr<TextPart>> TextPart::OfVisionModel(
    std::unique_ptr<TensorSource> whole) {
  return Create(std::move(whole), NameInVisionModel);
}

absl::StatusOr<std::unique_ptr<TextPart>> TextPart::OfBase(
    std::unique_ptr<TensorSource> whole) {
  return Create(std::move(whole), NameInBase);
}

TextPart::TextPart(std::unique_ptr<TensorSource> whole)
    : whole_(std::move(whole)) {}

absl::StatusOr<std::unique_ptr<TextPart>> TextPart::Create(
    std::unique_ptr<TensorSource> whole, const Rename& rename) {
  std::unique_ptr<TextPart> part(new TextPart(std::move(whole)));
  for (const std::string& name : part->whole_->Names()) {
    const auto renamed = rename(name);
    if (!renamed.has_value()) continue;
    const auto [known, is_new] = part->name_in_whole_.emplace(*renamed, name);
    if (is_new) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        part->FileOf(*renamed), ": tensors \"", absl::CHexEscape(known->second),
        "\" and \"", absl::CHexEscape(name), "\" are both ",
        absl::CHexEscape(*renamed), "."));
  }
  return part;
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

absl::StatusOr<bool> IsBaseModel(const TensorSource& source) {
  const std::vector<std::string> names = source.Names();
  const auto base = std::find_if(names.begin(), names.end(), IsOfBase);
  const auto prefixed = std::find_if(names.begin(), names.end(), HasPrefix);
  if (base == names.end() || prefixed == names.end()) {
    return base != names.end();
  }
  return absl::InvalidArgumentError(
      absl::StrCat(source.path(), " has tensors with and without the prefix \"",
                   kPrefix, "\": \"", absl::CHexEscape(*prefixed), "\" and \"",
                   absl::CHexEscape(*base), "\"; a model has one kind."));
}

}  // namespace lockstep
