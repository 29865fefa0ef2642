#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>

#include "proto/worker.grpc.pb.h"
#include "worker/service/admission.h"
#include "worker/service/drain.h"
#include "worker/service/generate_call.h"
#include "worker/service/grammar_cache.h"
#include "worker/service/load_board.h"
#include "worker/service/output_router.h"
#include "worker/service/request_validator.h"

namespace lockstep {

// The leader's gRPC service. Converts, calls, converts back: requests and their
// ends are Admission's and OutputRouter's. Requests that have text arrive as
// bytes, so that it is ours to say what is wrong with them.
class WorkerService final
    : public v1::Worker::WithRawCallbackMethod_Generate<
          v1::Worker::WithRawCallbackMethod_Abort<
              v1::Worker::WithCallbackMethod_GetModelInfo<
                  v1::Worker::WithCallbackMethod_GetServerInfo<
                      v1::Worker::WithCallbackMethod_WatchLoad<
                          v1::Worker::WithCallbackMethod_Drain<
                              v1::Worker::WithCallbackMethod_Undrain<
                                  v1::Worker::Service>>>>>>> {
 public:
  struct Facts {
    RequestLimits limits;
    v1::ModelInfo model;
    v1::ServerInfo server;  // without what changes
  };

  // All must outlive the server that this is registered with. `grammars` may be
  // null: requests that have one are refused.
  WorkerService(Facts facts, Admission* admission, const OutputRouter* router,
                const LoadBoard* board, lockstep::Drain* drain,
                GrammarCache* grammars = nullptr);

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Generate(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* Abort(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetModelInfo(grpc::CallbackServerContext* context,
                                         const v1::GetModelInfoRequest* request,
                                         v1::ModelInfo* response) override;
  grpc::ServerUnaryReactor* GetServerInfo(
      grpc::CallbackServerContext* context,
      const v1::GetServerInfoRequest* request,
      v1::ServerInfo* response) override;
  grpc::ServerWriteReactor<v1::Load>* WatchLoad(
      grpc::CallbackServerContext* context,
      const v1::WatchLoadRequest* request) override;
  grpc::ServerUnaryReactor* Drain(grpc::CallbackServerContext* context,
                                  const v1::DrainRequest* request,
                                  v1::DrainResponse* response) override;
  grpc::ServerUnaryReactor* Undrain(grpc::CallbackServerContext* context,
                                    const v1::UndrainRequest* request,
                                    v1::DrainResponse* response) override;

 private:
  // What the context of a call says of it.
  struct CallFacts {
    Admission::Clock::time_point deadline;
    std::string caller;
  };

  void Submit(const grpc::ByteBuffer& bytes, const CallFacts& call,
              const OnSubmitted& submitted);
  void SubmitWithGrammar(const v1::WorkerGenerateRequest& request,
                         v1::AddRequest add, const CallFacts& call,
                         const OnSubmitted& submitted);
  absl::StatusOr<v1::AbortResponse> AbortAll(const grpc::ByteBuffer& bytes);

  const Facts facts_;
  const std::chrono::steady_clock::time_point start_ =
      std::chrono::steady_clock::now();
  Admission* const admission_;
  const OutputRouter* const router_;
  const LoadBoard* const board_;
  lockstep::Drain* const drain_;
  GrammarCache* const grammars_;
};

}  // namespace lockstep
