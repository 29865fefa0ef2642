#include "tests/testing/reflection_client.h"

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <algorithm>
#include <chrono>

#include "common/grpc_status.h"
#include "common/status_macros.h"

namespace lockstep::testing {
namespace {

constexpr char kMethod[] =
    "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";

}  // namespace

absl::StatusOr<std::vector<std::string>> ReflectionClient::ListServices() {
  ReflectionRequest request;
  request.set_list_services("*");
  LOCKSTEP_ASSIGN_OR_RETURN(const ReflectionResponse response, Ask(request));
  std::vector<std::string> names;
  for (const auto& service : response.list_services_response().service()) {
    names.push_back(service.name());
  }
  std::sort(names.begin(), names.end());
  return names;
}

absl::StatusOr<std::vector<google::protobuf::FileDescriptorProto>>
ReflectionClient::FilesOf(const std::string& symbol) {
  ReflectionRequest request;
  request.set_file_containing_symbol(symbol);
  LOCKSTEP_ASSIGN_OR_RETURN(const ReflectionResponse response, Ask(request));
  std::vector<google::protobuf::FileDescriptorProto> files;
  for (const std::string& bytes :
       response.file_descriptor_response().file_descriptor_proto()) {
    if (!files.emplace_back().ParseFromString(bytes)) {
      return absl::InternalError("no FileDescriptorProto");
    }
  }
  return files;
}

absl::StatusOr<ReflectionResponse> ReflectionClient::Ask(
    const ReflectionRequest& request) {
  using Stub =
      grpc::TemplatedGenericStub<ReflectionRequest, ReflectionResponse>;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(30));
  grpc::CompletionQueue queue;
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  const auto stream = Stub(channel_).PrepareCall(&context, kMethod, &queue);
  ReflectionResponse response;
  grpc::Status status;
  stream->StartCall(nullptr);
  if (next()) {
    stream->WriteLast(request, {}, nullptr);
    next();
    stream->Read(&response, nullptr);
    next();
  }
  stream->Finish(&status, nullptr);
  next();
  LOCKSTEP_RETURN_IF_ERROR(FromGrpc(status));
  if (response.has_error_response()) {
    return absl::NotFoundError(response.error_response().error_message());
  }
  return response;
}

}  // namespace lockstep::testing
