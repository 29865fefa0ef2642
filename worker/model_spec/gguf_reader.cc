#include "worker/model_spec/gguf_reader.h"

#include <absl/strings/escaping.h>

#include "common/status_macros.h"

namespace lockstep {

absl::StatusOr<const Architecture*> GgufArchitecture(const GgufFile& file) {
  LOCKSTEP_ASSIGN_OR_RETURN(const absl::string_view name,
                            file.GetString("general.architecture"));
  const std::string experts_key = absl::StrCat(name, ".expert_count");
  uint64_t experts = 0;
  if (file.Find(experts_key) != nullptr) {
    LOCKSTEP_ASSIGN_OR_RETURN(experts, file.GetUint(experts_key));
  }
  const Architecture* architecture = FindGgufArchitecture(name, experts > 0);
  if (architecture != nullptr) return architecture;
  return UnsupportedArchitecture(
      file.path(),
      experts > 0 ? absl::StrCat(name, " with experts") : std::string(name));
}

GgufReader::GgufReader(const GgufFile& file)
    : file_(file),
      prefix_(absl::StrCat(file.GetString("general.architecture").value_or(""),
                           ".")) {}

std::string GgufReader::Key(absl::string_view name) const {
  return absl::StrCat(prefix_, name);
}

bool GgufReader::Has(absl::string_view name) const {
  return file_.Find(Key(name)) != nullptr;
}

absl::StatusOr<int> GgufReader::Int(absl::string_view name, uint64_t least,
                                    uint64_t most) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t value, file_.GetUint(Key(name)));
  if (value >= least && value <= most) return static_cast<int>(value);
  return Unexpected(name, value,
                    absl::StrCat("an integer from ", least, " to ", most));
}

absl::StatusOr<int> GgufReader::IntOr(absl::string_view name, uint64_t least,
                                      uint64_t most, int otherwise) const {
  if (!Has(name)) return otherwise;
  return Int(name, least, most);
}

absl::StatusOr<float> GgufReader::Float(absl::string_view name, double above,
                                        double most) const {
  LOCKSTEP_ASSIGN_OR_RETURN(const double value, file_.GetDouble(Key(name)));
  // A tiny value may be 0 as a float.
  if (static_cast<float>(value) > above && value <= most) {
    return static_cast<float>(value);
  }
  return Unexpected(
      name, value, absl::StrCat("a number above ", above, " and up to ", most));
}

absl::StatusOr<float> GgufReader::FloatOr(absl::string_view name, double above,
                                          double most, float otherwise) const {
  if (!Has(name)) return otherwise;
  return Float(name, above, most);
}

absl::Status GgufReader::Unexpected(absl::string_view name,
                                    const absl::AlphaNum& value,
                                    absl::string_view expected) const {
  return absl::InvalidArgumentError(
      absl::StrCat(file_.path(), ": the metadata \"", Key(name), "\" is ",
                   value, ", expected ", expected, "."));
}

absl::Status GgufReader::Unsupported(absl::string_view name,
                                     absl::string_view supported) const {
  return absl::UnimplementedError(absl::StrCat(
      file_.path(), ": the metadata \"", absl::CHexEscape(Key(name)),
      "\" asks for something that is not supported; ", supported, "."));
}

}  // namespace lockstep
