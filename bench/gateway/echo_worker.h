#pragma once

#include <absl/status/statusor.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "bench/gateway/echo_pace.h"
#include "bench/gateway/pacer.h"
#include "bench/gateway/sent_times.h"
#include "common/grpc_server.h"
#include "proto/worker.grpc.pb.h"

namespace lockstep::bench {

// The leader of a group that computes nothing: an answer is the prompt's ids,
// over and over, max_tokens of them, a message each. What a gateway costs shows
// in front of it.
//
//   SentTimes sent(streams, tokens);
//   LOCKSTEP_ASSIGN_OR_RETURN(auto worker, EchoWorker::Start(259, &sent));
//   ask(worker->address());
//
// The seed of a request is its stream's number in `sent`, which must outlive
// the worker. Any thread.
class EchoWorker : private v1::Worker::CallbackService {
 public:
  static absl::StatusOr<std::unique_ptr<EchoWorker>> Start(
      uint32_t vocabulary_size, SentTimes* sent);
  ~EchoWorker() override;

  std::string address() const;
  // Of the answers that begin from here on; not while one does.
  void set_pace(const EchoPace& pace) { pace_ = pace; }

 private:
  class Call;

  EchoWorker(uint32_t vocabulary_size, SentTimes* sent)
      : vocabulary_size_(vocabulary_size), sent_(sent) {}

  grpc::ServerWriteReactor<v1::WorkerGenerateResponse>* Generate(
      grpc::CallbackServerContext* context,
      const v1::WorkerGenerateRequest* request) override;
  grpc::ServerUnaryReactor* GetModelInfo(grpc::CallbackServerContext* context,
                                         const v1::GetModelInfoRequest* request,
                                         v1::ModelInfo* response) override;
  grpc::ServerUnaryReactor* GetServerInfo(
      grpc::CallbackServerContext* context,
      const v1::GetServerInfoRequest* request,
      v1::ServerInfo* response) override;

  const uint32_t vocabulary_size_;
  SentTimes* const sent_;
  EchoPace pace_;
  Pacer pacer_;
  std::unique_ptr<GrpcServer> server_;
};

}  // namespace lockstep::bench
