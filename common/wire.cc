#include "common/wire.h"

#include <absl/strings/str_cat.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/unknown_field_set.h>
#include <grpcpp/support/slice.h>

#include <limits>
#include <map>
#include <optional>
#include <string>

#include "common/utf8.h"

namespace lockstep {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::UnknownField;
using google::protobuf::UnknownFieldSet;

// A sentence about the first string that is no UTF-8 in the encoded message.
std::optional<std::string> FindInvalidText(const Descriptor& descriptor,
                                           const std::string& bytes,
                                           const std::string& path) {
  UnknownFieldSet fields;
  if (!fields.ParseFromString(bytes)) return std::nullopt;
  std::map<int, int> seen;  // by field number; for the index of repeated ones
  for (int i = 0; i < fields.field_count(); ++i) {
    const UnknownField& value = fields.field(i);
    const FieldDescriptor* field = descriptor.FindFieldByNumber(value.number());
    if (field == nullptr ||
        value.type() != UnknownField::TYPE_LENGTH_DELIMITED) {
      continue;
    }
    std::string name = absl::StrCat(path, field->name());
    if (field->is_repeated()) {
      absl::StrAppend(&name, "[", seen[value.number()]++, "]");
    }
    if (field->type() == FieldDescriptor::TYPE_STRING) {
      const auto offset = FindInvalidUtf8(value.length_delimited());
      if (!offset.has_value()) continue;
      return absl::StrCat(name, " is no valid UTF-8: its byte ", *offset,
                          " starts no character.");
    }
    if (field->type() == FieldDescriptor::TYPE_MESSAGE) {
      auto inner = FindInvalidText(*field->message_type(),
                                   value.length_delimited(), name + ".");
      if (inner.has_value()) return inner;
    }
  }
  return std::nullopt;
}

}  // namespace

absl::Status ParseMessage(const grpc::ByteBuffer& buffer,
                          google::protobuf::Message* message) {
  // Protobuf's own words on a text that is no UTF-8: a line of the log for each
  // bad request.
  const google::protobuf::LogSilencer silencer;
  grpc::Slice slice;
  const bool is_read = buffer.DumpToSingleSlice(&slice).ok() &&
                       slice.size() <= std::numeric_limits<int>::max();
  if (is_read && message->ParseFromArray(slice.begin(), slice.size())) {
    return absl::OkStatus();
  }
  const Descriptor& descriptor = *message->GetDescriptor();
  const std::string bytes(slice.begin(), slice.end());
  return absl::InvalidArgumentError(
      FindInvalidText(descriptor, bytes, "")
          .value_or(absl::StrCat("the request is no well-formed ",
                                 descriptor.full_name(), ".")));
}

grpc::ByteBuffer SerializeMessage(const google::protobuf::Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace lockstep
