// Waits until a gRPC server says that it serves, by grpc.health.v1's Watch.
//
//   await_serving HOST:PORT SECONDS [SERVICE]
//
// Without SERVICE the server as a whole. Exit status: 0 once it serves, 1 when
// the time is over, 2 for a wrong use.

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

constexpr size_t kMostServiceBytes = 127;

// Blocks for the one operation in flight.
bool Completes(grpc::CompletionQueue& queue) {
  void* tag;
  bool ok = false;
  return queue.Next(&tag, &ok) && ok;
}

// HealthCheckRequest{service}: field 1, its length in one byte.
std::string RequestFor(const std::string& service) {
  if (service.empty()) return "";
  return std::string({0x0a, static_cast<char>(service.size())}) + service;
}

bool AwaitServing(const std::string& address, int seconds,
                  const std::string& service) {
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
  grpc::Slice request(RequestFor(service));
  call->WriteLast(grpc::ByteBuffer(&request, 1), grpc::WriteOptions(), nullptr);
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
  const std::string service = argc > 3 ? argv[3] : "";
  if (argc < 3 || argc > 4 || std::atoi(argv[2]) <= 0 ||
      service.size() > kMostServiceBytes) {
    std::fprintf(stderr, "usage: await_serving HOST:PORT SECONDS [SERVICE]\n");
    return 2;
  }
  return AwaitServing(argv[1], std::atoi(argv[2]), service) ? 0 : 1;
}
