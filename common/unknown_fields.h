#pragma once

#include <absl/status/status.h>
#include <google/protobuf/message.h>

namespace lockstep {

// INVALID_ARGUMENT if `message`, or a message inside it, carries a field this
// build does not know or an enum value without a name; the sentence names the
// path and the number. A field that would be ignored is refused instead.
absl::Status RefuseUnknownFields(const google::protobuf::Message& message);

}  // namespace lockstep
