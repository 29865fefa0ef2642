#pragma once

#include <absl/status/statusor.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

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
//   LOCKSTEP_ASSIGN_OR_RETURN(auto worker, EchoWorker::Start({}, &sent));
//   ask(worker->address());
//
// The seed of a request is its stream's number in `sent`, which must outlive
// the worker. Any thread.
class EchoWorker : private v1::Worker::CallbackService {
 public:
  struct Options {
    uint32_t vocabulary_size = 0;
    // Of a stream, from one token to the next; zero: as fast as they are taken.
    SteadyClock::duration interval = SteadyClock::duration::zero();
    // All streams have their tokens at the same times, as from an engine's
    // steps.
    bool in_steps = false;
  };

  static absl::StatusOr<std::unique_ptr<EchoWorker>> Start(
      const Options& options, SentTimes* sent);
  ~EchoWorker() override;

  std::string address() const;
  void set_pace(SteadyClock::duration interval, bool in_steps);

 private:
  class Call;

  EchoWorker(const Options& options, SentTimes* sent)
      : options_(options), sent_(sent) {}

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

  Options options_;  // the pace between two runs alone
  SentTimes* const sent_;
  Pacer pacer_;
  std::unique_ptr<GrpcServer> server_;
};

}  // namespace lockstep::bench
