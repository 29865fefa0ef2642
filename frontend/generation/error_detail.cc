#include "frontend/generation/error_detail.h"

#include <absl/strings/cord.h>

namespace lockstep {
namespace {

constexpr char kReason[] = "lockstep/reason";
constexpr char kField[] = "lockstep/field";

std::string Get(const absl::Status& status, absl::string_view key) {
  const auto value = status.GetPayload(key);
  return value.has_value() ? std::string(*value) : "";
}

}  // namespace

absl::Status WithReason(absl::Status status, absl::string_view reason) {
  status.SetPayload(kReason, absl::Cord(reason));
  return status;
}

absl::Status WithField(absl::Status status, absl::string_view field) {
  status.SetPayload(kField, absl::Cord(field));
  return status;
}

std::string ReasonOf(const absl::Status& status) {
  return Get(status, kReason);
}

std::string FieldOf(const absl::Status& status) { return Get(status, kField); }

}  // namespace lockstep
