#pragma once

#include <absl/status/statusor.h>
#include <google/protobuf/descriptor.pb.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/testing/reflection.pb.h"

namespace lockstep::testing {

// Asks a server what it serves, as grpcurl does.
class ReflectionClient {
 public:
  explicit ReflectionClient(std::shared_ptr<grpc::Channel> channel)
      : channel_(std::move(channel)) {}

  // Full names, sorted.
  absl::StatusOr<std::vector<std::string>> ListServices();

  // The file that defines a service, method or message, then those it imports.
  absl::StatusOr<std::vector<google::protobuf::FileDescriptorProto>> FilesOf(
      const std::string& symbol);

 private:
  absl::StatusOr<ReflectionResponse> Ask(const ReflectionRequest& request);

  const std::shared_ptr<grpc::Channel> channel_;
};

}  // namespace lockstep::testing
