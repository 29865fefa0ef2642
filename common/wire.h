#pragma once

#include <absl/status/status.h>
#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

namespace lockstep {

// Parses a request. gRPC's own parsing answers a text that is no UTF-8 with
// INTERNAL and no word about the field; this is INVALID_ARGUMENT naming the
// field and the offset of the first bad byte.
absl::Status ParseMessage(const grpc::ByteBuffer& buffer,
                          google::protobuf::Message* message);

grpc::ByteBuffer SerializeMessage(const google::protobuf::Message& message);

}  // namespace lockstep
