// Waits until a gRPC server says that it serves, by grpc.health.v1's Watch.
//
//   await_serving HOST:PORT SECONDS
//
// Exit status: 0 once it serves, 1 when the time is over, 2 for a wrong use.

#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

constexpr char kWatch[] = "/grpc.health.v1.Health/Watch";

// HealthCheckResponse{status: SERVING}: field 1, a varint, 1.
constexpr char kServing[] = {0x08, 0x01};

bool IsServing(const grpc::ByteBuffer& response) {
  grpc::Slice bytes;
  return response.DumpToSingleSlice(&bytes).ok() &&
         std::string(reinterpret_cast<const char*>(bytes.begin()),
                     bytes.size()) == std::string(kServing, sizeof(kServing));
}

// Blocks for the one operation in flight.
bool Completes(grpc::CompletionQueue& queue) {
  void* tag;
  bool ok = false;
  return queue.Next(&tag, &ok) && ok;
}

bool AwaitServing(const std::string& address, int seconds) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  grpc::GenericStub stub(grpc::CreateCustomChannel(
      address, grpc::InsecureChannelCredentials(), arguments));

  grpc::CompletionQueue queue;
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(seconds));
  auto call = stub.PrepareCall(&context, kWatch, &queue);
  call->StartCall(nullptr);
  if (!Completes(queue)) return false;
  // HealthCheckRequest{}: the server as a whole.
  grpc::Slice nothing;
  call->WriteLast(grpc::ByteBuffer(&nothing, 1), grpc::WriteOptions(), nullptr);
  if (!Completes(queue)) return false;

  grpc::ByteBuffer response;
  do {
    call->Read(&response, nullptr);
    if (!Completes(queue)) return false;
  } while (!IsServing(response));
  context.TryCancel();
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3 || std::atoi(argv[2]) <= 0) {
    std::fprintf(stderr, "usage: await_serving HOST:PORT SECONDS\n");
    return 2;
  }
  return AwaitServing(argv[1], std::atoi(argv[2])) ? 0 : 1;
}
