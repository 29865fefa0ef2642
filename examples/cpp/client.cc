// Streams an answer: client HOST:PORT PROMPT. Ctrl-C cancels it.

#include <grpcpp/grpcpp.h>
#include <signal.h>

#include <cstdlib>
#include <fstream>
#include <iostream>
#include <sstream>
#include <thread>

#include "proto/inference.grpc.pb.h"

static grpc::ClientContext contexts[4];  // of as many attempts

int main(int, char** argv) {
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, nullptr);
  std::thread([interrupt] {
    int signal = 0;
    sigwait(&interrupt, &signal);
    for (grpc::ClientContext& context : contexts) context.TryCancel();
  }).detach();
  const char* authority = std::getenv("LOCKSTEP_CA");
  std::ostringstream pem;
  if (authority) pem << std::ifstream(authority).rdbuf();
  const auto stub = lockstep::v1::Inference::NewStub(grpc::CreateChannel(
      argv[1], authority ? grpc::SslCredentials({pem.str(), "", ""})
                         : grpc::InsecureChannelCredentials()));
  const char* key = std::getenv("LOCKSTEP_API_KEY");
  const char* limit = std::getenv("LOCKSTEP_DEADLINE_S");
  const auto deadline = std::chrono::system_clock::now() +
                        std::chrono::seconds(limit ? std::atoi(limit) : 60);
  lockstep::v1::GenerateRequest request;
  request.set_text(argv[2]);
  request.mutable_sampling()->set_temperature(0);
  request.mutable_sampling()->set_max_tokens(64);
  grpc::Status status;
  auto pause = std::chrono::milliseconds(100);
  for (grpc::ClientContext& context : contexts) {
    context.set_deadline(deadline);
    if (key) context.AddMetadata("authorization", std::string("Bearer ") + key);
    const auto reader = stub->Generate(&context, request);
    lockstep::v1::GenerateResponse response;
    while (reader->Read(&response))
      std::cout << response.delta().text() << std::flush;
    status = reader->Finish();
    const bool begun = response.event_case() != response.EVENT_NOT_SET;
    if (begun || (status.error_code() != grpc::UNAVAILABLE &&
                  status.error_code() != grpc::RESOURCE_EXHAUSTED))
      break;
    std::this_thread::sleep_for(pause *= 2);
  }
  std::cerr << "\n" << status.error_message() << "\n";
  return status.ok() ? 0 : 1;
}
