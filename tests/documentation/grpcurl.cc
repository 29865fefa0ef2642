// As much of grpcurl as the pages use, for machines without it. What a method
// takes and returns it asks the server itself.
//
//   grpcurl -plaintext -d JSON HOST:PORT SERVICE/METHOD

#include <absl/status/status.h>
#include <absl/status/statusor.h>
#include <absl/strings/str_cat.h>
#include <absl/strings/str_join.h>
#include <absl/strings/str_split.h>
#include <glog/logging.h>
#include <google/protobuf/descriptor_database.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>

#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "common/grpc_status.h"
#include "common/status_macros.h"
#include "tests/testing/reflection_client.h"

namespace lockstep::testing {
namespace {

using ::google::protobuf::Message;

void Print(const Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.preserve_proto_field_names = true;
  std::string json;
  const auto status =
      google::protobuf::util::MessageToJsonString(message, &json, options);
  CHECK(status.ok()) << status;
  std::cout << json << std::flush;
}

// Sends `request` and prints each answer when it comes, into `response`.
absl::Status Stream(const std::shared_ptr<grpc::Channel>& channel,
                    const std::string& method, const Message& request,
                    Message* response) {
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const auto next = [&queue] {
    void* tag = nullptr;
    bool ok = false;
    return queue.Next(&tag, &ok) && ok;
  };
  grpc::TemplatedGenericStub<Message, Message> stub(channel);
  const auto stream =
      stub.PrepareCall(&context, absl::StrCat("/", method), &queue);
  stream->StartCall(nullptr);
  if (next()) {
    stream->WriteLast(request, {}, nullptr);
    next();
    for (stream->Read(response, nullptr); next();
         stream->Read(response, nullptr)) {
      Print(*response);
    }
  }
  grpc::Status status;
  stream->Finish(&status, nullptr);
  next();
  return FromGrpc(status);
}

absl::Status Call(const std::string& json, const std::string& address,
                  const std::string& method) {
  const auto channel =
      grpc::CreateChannel(address, grpc::InsecureChannelCredentials());
  const std::vector<std::string> parts = absl::StrSplit(method, '/');
  LOCKSTEP_ASSIGN_OR_RETURN(const auto files,
                            ReflectionClient(channel).FilesOf(parts[0]));
  google::protobuf::SimpleDescriptorDatabase database;
  for (const auto& file : files) database.Add(file);
  const google::protobuf::DescriptorPool pool(&database);
  const auto* descriptor = pool.FindMethodByName(absl::StrJoin(parts, "."));
  if (descriptor == nullptr) {
    return absl::NotFoundError(absl::StrCat("there is no method ", method));
  }
  google::protobuf::DynamicMessageFactory factory(&pool);
  const std::unique_ptr<Message> request(
      factory.GetPrototype(descriptor->input_type())->New());
  const std::unique_ptr<Message> response(
      factory.GetPrototype(descriptor->output_type())->New());
  const auto parsed =
      google::protobuf::util::JsonStringToMessage(json, request.get());
  if (!parsed.ok()) return absl::InvalidArgumentError(parsed.ToString());
  return Stream(channel, method, *request, response.get());
}

}  // namespace
}  // namespace lockstep::testing

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (words.size() != 5 || words[0] != "-plaintext" || words[1] != "-d") {
    std::cerr << "grpcurl -plaintext -d JSON HOST:PORT SERVICE/METHOD\n";
    return 2;
  }
  const absl::Status status =
      lockstep::testing::Call(words[2], words[3], words[4]);
  if (!status.ok()) std::cerr << status << "\n";
  return status.ok() ? 0 : 1;
}
