#pragma once

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace lockstep {

// Reads the fields of a JSON object that someone else wrote: each must have the
// right type and lie within limits. A field that is null counts as absent, as
// it does in Hugging Face's files.
//
//   JsonFields fields(config, "model/config.json");
//   LOCKSTEP_ASSIGN_OR_RETURN(int layers,
//                             fields.Int("num_hidden_layers", 1, kMaxLayers));
//
// INVALID_ARGUMENT names path, field, what is expected and what was found.
// `object` must outlive this.
class JsonFields {
 public:
  JsonFields(const nlohmann::json& object, std::string path);
  // Nor may it be a copy that is gone with the line.
  JsonFields(nlohmann::json&& object, std::string path) = delete;

  const std::string& path() const { return path_; }

  // Null where the field is absent or null.
  const nlohmann::json* Find(absl::string_view name) const;

  absl::StatusOr<int> Int(absl::string_view name, int64_t least,
                          int64_t most) const;
  absl::StatusOr<int> IntOr(absl::string_view name, int64_t least, int64_t most,
                            int otherwise) const;
  absl::StatusOr<float> Float(absl::string_view name, double above,
                              double most) const;
  absl::StatusOr<float> FloatOr(absl::string_view name, double above,
                                double most, float otherwise) const;
  absl::StatusOr<bool> BoolOr(absl::string_view name, bool otherwise) const;
  absl::StatusOr<std::string> StringOr(absl::string_view name,
                                       absl::string_view otherwise) const;

  // The field as an object; absent where it is absent.
  absl::StatusOr<std::optional<JsonFields>> Object(
      absl::string_view name) const;

  absl::Status Unexpected(absl::string_view name,
                          absl::string_view expected) const;

  // UNIMPLEMENTED naming path, field and value, which is there.
  absl::Status Unsupported(absl::string_view name,
                           absl::string_view supported) const;

 private:
  const nlohmann::json& object_;
  std::string path_;
};

// `value` as a message shows it: in JSON, or "a list".
std::string JsonExcerpt(const nlohmann::json& value);

}  // namespace lockstep
