#pragma once

#include <absl/status/statusor.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "bench/gateway/echo_pace.h"
#include "bench/gateway/pacer.h"
#include "bench/gateway/sent_times.h"

namespace lockstep::bench {

// EchoWorker's answers in the protocol that other gateways speak with vLLM, so
// that they can be measured beside ours. The protocol is `vllm_engine.proto` of
// the package smg-grpc-proto 0.4.28; what an echo needs of it is named here by
// the numbers of its fields.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto engine, VllmEchoEngine::Start(259, &sent));
//   start_gateway("grpc://" + engine->address());
//
// As of EchoWorker, the seed of a request is its stream's number in `sent`,
// which must outlive the engine. Any thread.
class VllmEchoEngine : private grpc::CallbackGenericService {
 public:
  static absl::StatusOr<std::unique_ptr<VllmEchoEngine>> Start(
      uint32_t vocabulary_size, SentTimes* sent);
  ~VllmEchoEngine() override;

  std::string address() const;
  // Of the answers that begin from here on; not while one does.
  void set_pace(const EchoPace& pace) { pace_ = pace; }

 private:
  class Answer;
  class Reply;

  VllmEchoEngine(uint32_t vocabulary_size, SentTimes* sent)
      : vocabulary_size_(vocabulary_size), sent_(sent) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override;

  const uint32_t vocabulary_size_;
  SentTimes* const sent_;
  EchoPace pace_;
  Pacer pacer_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace lockstep::bench
