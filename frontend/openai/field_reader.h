#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace lockstep::openai {

// The fields of a JSON object, by type. The first that is of another type, or
// out of range, is kept as INVALID_ARGUMENT naming the field, its value and
// what it must be; null is as if it were not there.
//
//   FieldReader reader(object);
//   const auto temperature = reader.Number("temperature");
//   const bool stream = reader.Bool("stream").value_or(false);
//   LOCKSTEP_RETURN_IF_ERROR(reader.status());
//
// `object` must outlive it. One thread.
class FieldReader {
 public:
  using Json = nlohmann::json;

  // `prefix` goes before the names in errors: "messages[2].".
  explicit FieldReader(const Json& object, std::string prefix = "");
  // Nor may it be a copy that is gone with the line.
  explicit FieldReader(Json&& object, std::string prefix = "") = delete;

  // Null where the field is not there, or null.
  const Json* Find(absl::string_view name) const;

  std::optional<bool> Bool(absl::string_view name);
  std::optional<float> Number(absl::string_view name);
  std::optional<int64_t> Integer(
      absl::string_view name,
      int64_t least = std::numeric_limits<int64_t>::min(),
      int64_t most = std::numeric_limits<int64_t>::max());
  std::optional<std::string> String(absl::string_view name);
  // Also a single one, as a list of it.
  std::vector<std::string> Strings(absl::string_view name);
  std::vector<uint32_t> TokenIds(absl::string_view name,
                                 size_t most = SIZE_MAX);
  const Json* Object(absl::string_view name);

  // For what the caller has found out about a field.
  void Fail(absl::string_view name, absl::string_view what_it_must_be);
  // About an element of one.
  void FailElement(absl::string_view name, size_t index,
                   absl::string_view what_it_must_be);
  // What another reader, of an object within this one, has found.
  void Adopt(const absl::Status& status) { status_.Update(status); }
  const absl::Status& status() const { return status_; }

 private:
  const Json& object_;
  const std::string prefix_;
  absl::Status status_;
};

// Token ids of a JSON array called `name`; INVALID_ARGUMENT names the element
// that is none.
absl::StatusOr<std::vector<uint32_t>> ReadTokenIds(const std::string& name,
                                                   const nlohmann::json& array);

// "NAME is VALUE; it must be …", the value cut to what fits a sentence.
absl::Status FieldError(const std::string& name, const nlohmann::json& value,
                        absl::string_view what_it_must_be);

}  // namespace lockstep::openai
