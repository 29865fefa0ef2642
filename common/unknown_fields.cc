#include "common/unknown_fields.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/unknown_field_set.h>

#include <string>
#include <vector>

#include "common/status_macros.h"

namespace lockstep {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

absl::Status Check(const Message& message, const std::string& path);

// proto3 keeps an enum's number even when it has no name.
absl::Status CheckEnum(const FieldDescriptor& field, int value,
                       const std::string& path) {
  if (field.enum_type()->FindValueByNumber(value) != nullptr) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the value ", value, " of ", path, " is not one of ",
                   field.enum_type()->full_name(), "."));
}

absl::Status CheckField(const Message& message, const FieldDescriptor& field,
                        const std::string& path) {
  const Reflection& reflection = *message.GetReflection();
  const bool is_message = field.cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE;
  const bool is_enum = field.cpp_type() == FieldDescriptor::CPPTYPE_ENUM;
  if (!is_message && !is_enum) return absl::OkStatus();
  if (!field.is_repeated()) {
    return is_message
               ? Check(reflection.GetMessage(message, &field), path)
               : CheckEnum(field, reflection.GetEnumValue(message, &field),
                           path);
  }
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    const std::string item = absl::StrCat(path, "[", i, "]");
    LOCKSTEP_RETURN_IF_ERROR(
        is_message
            ? Check(reflection.GetRepeatedMessage(message, &field, i), item)
            : CheckEnum(field,
                        reflection.GetRepeatedEnumValue(message, &field, i),
                        item));
  }
  return absl::OkStatus();
}

absl::Status Check(const Message& message, const std::string& path) {
  const Reflection& reflection = *message.GetReflection();
  const auto& unknown = reflection.GetUnknownFields(message);
  if (!unknown.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("field number ", unknown.field(0).number(), " of ",
                     path.empty() ? message.GetDescriptor()->name() : path,
                     " is not known to this server."));
  }
  std::vector<const FieldDescriptor*> fields;
  reflection.ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string inner =
        path.empty() ? field->name() : absl::StrCat(path, ".", field->name());
    LOCKSTEP_RETURN_IF_ERROR(CheckField(message, *field, inner));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status RefuseUnknownFields(const Message& message) {
  return Check(message, "");
}

}  // namespace lockstep
