#include "worker/model_spec/json_fields.h"

#include <absl/strings/str_cat.h>

#include <cmath>
#include <utility>

#include "common/status_macros.h"

namespace lockstep {

using nlohmann::json;

JsonFields::JsonFields(const json& object, std::string path)
    : object_(object), path_(std::move(path)) {}

const json* JsonFields::Find(absl::string_view name) const {
  if (!object_.is_object()) return nullptr;
  const auto field = object_.find(std::string(name));
  return field == object_.end() || field->is_null() ? nullptr : &*field;
}

absl::StatusOr<int> JsonFields::Int(absl::string_view name, int64_t least,
                                    int64_t most) const {
  const json* field = Find(name);
  if (field != nullptr && field->is_number_integer()) {
    // A number above int64's range is negative here, and refused all the same.
    const int64_t value = field->get<int64_t>();
    if (value >= least && value <= most) return static_cast<int>(value);
  }
  return Unexpected(name,
                    absl::StrCat("an integer from ", least, " to ", most));
}

absl::StatusOr<int> JsonFields::IntOr(absl::string_view name, int64_t least,
                                      int64_t most, int otherwise) const {
  if (Find(name) == nullptr) return otherwise;
  return Int(name, least, most);
}

absl::StatusOr<float> JsonFields::Float(absl::string_view name, double above,
                                        double most) const {
  const json* field = Find(name);
  if (field != nullptr && field->is_number()) {
    const double value = field->get<double>();
    // A tiny value may be 0 as a float.
    if (std::isfinite(value) && value <= most &&
        static_cast<float>(value) > above) {
      return static_cast<float>(value);
    }
  }
  // Below 0 there is no limit but the next number to it, so that 0 is one.
  return Unexpected(name, above < 0 ? absl::StrCat("a number from 0 to ", most)
                                    : absl::StrCat("a number above ", above,
                                                   " and up to ", most));
}

absl::StatusOr<float> JsonFields::FloatOr(absl::string_view name, double above,
                                          double most, float otherwise) const {
  if (Find(name) == nullptr) return otherwise;
  return Float(name, above, most);
}

absl::StatusOr<bool> JsonFields::BoolOr(absl::string_view name,
                                        bool otherwise) const {
  const json* field = Find(name);
  if (field == nullptr) return otherwise;
  if (!field->is_boolean()) return Unexpected(name, "true or false");
  return field->get<bool>();
}

absl::StatusOr<std::string> JsonFields::StringOr(
    absl::string_view name, absl::string_view otherwise) const {
  const json* field = Find(name);
  if (field == nullptr) return std::string(otherwise);
  if (!field->is_string()) return Unexpected(name, "a string");
  return field->get<std::string>();
}

absl::StatusOr<std::optional<JsonFields>> JsonFields::Object(
    absl::string_view name) const {
  const json* field = Find(name);
  if (field == nullptr) return std::optional<JsonFields>();
  if (!field->is_object()) return Unexpected(name, "an object");
  return std::optional<JsonFields>(std::in_place, *field,
                                   absl::StrCat(path_, ", in \"", name, "\""));
}

absl::Status JsonFields::Unexpected(absl::string_view name,
                                    absl::string_view expected) const {
  const json* field = Find(name);
  return absl::InvalidArgumentError(
      absl::StrCat(path_, ": \"", name, "\" is ",
                   field == nullptr ? "missing" : JsonExcerpt(*field),
                   ", expected ", expected, "."));
}

absl::Status JsonFields::Unsupported(absl::string_view name,
                                     absl::string_view supported) const {
  return absl::UnimplementedError(
      absl::StrCat(path_, ": \"", name, "\" is ", JsonExcerpt(*Find(name)),
                   ", which is not supported; ", supported, "."));
}

std::string JsonExcerpt(const json& value) {
  // What is nested is not written out: it may be deep.
  if (value.is_object()) return "an object";
  if (value.is_array()) return value.empty() ? "an empty list" : "a list";
  constexpr size_t kShown = 80;
  const std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true,
                                      json::error_handler_t::replace);
  return text.size() <= kShown ? text : text.substr(0, kShown) + "…";
}

}  // namespace lockstep
