#include "common/unknown_fields.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <optional>
#include <string>
#include <vector>

namespace lockstep {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Something wrong, with the sentence around its path. The path is put together
// on the way up, so that what is fine costs none.
struct Finding {
  std::string before;
  std::string path;  // of the message looked at last; empty is itself
  std::string after;

  void Prefix(const std::string& name) {
    path = path.empty() ? name : absl::StrCat(name, ".", path);
  }
};

std::optional<Finding> Check(const Message& message);

// proto3 keeps an enum's number even when it has no name.
std::optional<Finding> CheckEnum(const FieldDescriptor& field, int value) {
  if (field.enum_type()->FindValueByNumber(value) != nullptr) {
    return std::nullopt;
  }
  return Finding{
      absl::StrCat("the value ", value, " of "), "",
      absl::StrCat(" is not one of ", field.enum_type()->full_name(), ".")};
}

bool IsMessage(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
}

bool IsEnum(const FieldDescriptor& field) {
  return field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM;
}

// Scalars hold nothing unknown, and looking at a map as a list of messages
// copies it.
bool MayHoldUnknown(const FieldDescriptor& field) {
  if (!field.is_map()) return IsMessage(field) || IsEnum(field);
  return MayHoldUnknown(*field.message_type()->map_value());
}

std::optional<Finding> CheckField(const Message& message,
                                  const FieldDescriptor& field) {
  if (!MayHoldUnknown(field)) return std::nullopt;
  const Reflection& reflection = *message.GetReflection();
  const bool is_message = IsMessage(field);
  if (!field.is_repeated()) {
    auto finding =
        is_message ? Check(reflection.GetMessage(message, &field))
                   : CheckEnum(field, reflection.GetEnumValue(message, &field));
    if (finding.has_value()) finding->Prefix(field.name());
    return finding;
  }
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    auto finding =
        is_message ? Check(reflection.GetRepeatedMessage(message, &field, i))
                   : CheckEnum(field, reflection.GetRepeatedEnumValue(
                                          message, &field, i));
    if (!finding.has_value()) continue;
    finding->Prefix(absl::StrCat(field.name(), "[", i, "]"));
    return finding;
  }
  return std::nullopt;
}

std::optional<Finding> Check(const Message& message) {
  const Reflection& reflection = *message.GetReflection();
  const auto& unknown = reflection.GetUnknownFields(message);
  if (!unknown.empty()) {
    return Finding{
        absl::StrCat("field number ", unknown.field(0).number(), " of "), "",
        " is not known to this server."};
  }
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    auto finding = CheckField(message, *field);
    if (finding.has_value()) return finding;
  }
  return std::nullopt;
}

}  // namespace

absl::Status RefuseUnknownFields(const Message& message) {
  const auto finding = Check(message);
  if (!finding.has_value()) return absl::OkStatus();
  const std::string& path =
      finding->path.empty() ? message.GetDescriptor()->name() : finding->path;
  return absl::InvalidArgumentError(
      absl::StrCat(finding->before, path, finding->after));
}

}  // namespace lockstep
