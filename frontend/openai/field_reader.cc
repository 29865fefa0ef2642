#include "frontend/openai/field_reader.h"

#include <absl/strings/str_cat.h>

#include <cmath>
#include <utility>

#include "common/utf8.h"
#include "frontend/generation/error_detail.h"

namespace lockstep::openai {
namespace {

using nlohmann::json;

constexpr double kMostFloat = std::numeric_limits<float>::max();
constexpr uint32_t kMostTokenId = std::numeric_limits<uint32_t>::max();

// JSON knows no integers: 3.0 is one.
std::optional<int64_t> AsInteger(const json& value) {
  if (value.is_number_unsigned()) {
    const uint64_t number = value.get<uint64_t>();
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return std::nullopt;
    }
    return number;
  }
  if (value.is_number_integer()) return value.get<int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  constexpr double kMost = 9007199254740992;  // 2^53: exact up to here
  if (number != std::floor(number) || std::abs(number) > kMost) {
    return std::nullopt;
  }
  return static_cast<int64_t>(number);
}

std::string RangeOf(int64_t least, int64_t most) {
  constexpr auto kMin = std::numeric_limits<int64_t>::min();
  constexpr auto kMax = std::numeric_limits<int64_t>::max();
  if (least == kMin && most == kMax) return "an integer";
  if (most == kMax) return absl::StrCat("an integer, at least ", least);
  return absl::StrCat("an integer from ", least, " to ", most);
}

}  // namespace

FieldReader::FieldReader(const Json& object, std::string prefix)
    : object_(object), prefix_(std::move(prefix)) {}

const json* FieldReader::Find(absl::string_view name) const {
  const auto found = object_.find(std::string(name));
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

std::optional<bool> FieldReader::Bool(absl::string_view name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_boolean()) return value->get<bool>();
  Fail(name, "true or false");
  return std::nullopt;
}

std::optional<float> FieldReader::Number(absl::string_view name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  const bool is_number = value->is_number();
  if (is_number && std::abs(value->get<double>()) <= kMostFloat) {
    return value->get<float>();
  }
  Fail(name, is_number ? "a number that 32 bits can hold" : "a number");
  return std::nullopt;
}

std::optional<int64_t> FieldReader::Integer(absl::string_view name,
                                            int64_t least, int64_t most) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  const auto number = AsInteger(*value);
  if (number.has_value() && *number >= least && *number <= most) return number;
  Fail(name, RangeOf(least, most));
  return std::nullopt;
}

std::optional<std::string> FieldReader::String(absl::string_view name) {
  const Json* value = Find(name);
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  Fail(name, "a string");
  return std::nullopt;
}

std::vector<std::string> FieldReader::Strings(absl::string_view name) {
  const Json* value = Find(name);
  if (value == nullptr) return {};
  if (value->is_string()) return {value->get<std::string>()};
  if (!value->is_array()) {
    Fail(name, "a string or a list of strings");
    return {};
  }
  std::vector<std::string> strings;
  for (const Json& element : *value) {
    if (!element.is_string()) {
      FailElement(name, strings.size(), "a string");
      return {};
    }
    strings.push_back(element.get<std::string>());
  }
  return strings;
}

std::vector<uint32_t> FieldReader::TokenIds(absl::string_view name,
                                            size_t most) {
  const Json* value = Find(name);
  if (value == nullptr) return {};
  if (!value->is_array()) {
    Fail(name, "a list of token ids");
    return {};
  }
  if (value->size() > most) {
    Fail(name, absl::StrCat("a list of at most ", most, " token ids"));
    return {};
  }
  auto ids = ReadTokenIds(absl::StrCat(prefix_, name), *value);
  if (ids.ok()) return *std::move(ids);
  Adopt(ids.status());
  return {};
}

const json* FieldReader::Object(absl::string_view name) {
  const Json* value = Find(name);
  if (value == nullptr || value->is_object()) return value;
  Fail(name, "an object");
  return nullptr;
}

void FieldReader::Fail(absl::string_view name,
                       absl::string_view what_it_must_be) {
  if (!status_.ok()) return;
  const Json* value = Find(name);
  status_ = FieldError(absl::StrCat(prefix_, name),
                       value == nullptr ? Json() : *value, what_it_must_be);
}

void FieldReader::FailElement(absl::string_view name, size_t index,
                              absl::string_view what_it_must_be) {
  if (!status_.ok()) return;
  status_ = FieldError(absl::StrCat(prefix_, name, "[", index, "]"),
                       (*Find(name))[index], what_it_must_be);
}

absl::StatusOr<std::vector<uint32_t>> ReadTokenIds(const std::string& name,
                                                   const json& array) {
  std::vector<uint32_t> ids;
  ids.reserve(array.size());
  for (const json& element : array) {
    const auto id = AsInteger(element);
    if (!id.has_value() || *id < 0 || *id > kMostTokenId) {
      return FieldError(absl::StrCat(name, "[", ids.size(), "]"), element,
                        "a token id");
    }
    ids.push_back(*id);
  }
  return ids;
}

absl::Status FieldError(const std::string& name, const json& value,
                        absl::string_view what_it_must_be) {
  constexpr size_t kShownBytes = 60;
  // A list or an object may be as long as the request.
  std::string shown = value.is_array()    ? "a list"
                      : value.is_object() ? "an object"
                                          : value.dump();
  if (shown.size() > kShownBytes) {
    shown = RepairUtf8(shown.substr(0, kShownBytes)) + "…";
  }
  return WithField(
      absl::InvalidArgumentError(absl::StrCat(
          name, " is ", shown, "; it must be ", what_it_must_be, ".")),
      name);
}

}  // namespace lockstep::openai
