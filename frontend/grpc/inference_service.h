#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>

#include "frontend/access/access_control.h"
#include "frontend/generation/pipeline.h"
#include "frontend/grpc/stream_watch.h"
#include "frontend/grpc/unary_call.h"
#include "frontend/ledger/access_record.h"
#include "frontend/ledger/request_ledger.h"
#include "frontend/routing/group_set.h"
#include "proto/inference.grpc.pb.h"

namespace lockstep {

// lockstep.v1.Inference: converts, calls the pipeline, converts back; enters
// each call into the book. Stateless. Requests arrive as bytes, so that it is
// ours to say what is wrong with them, and on which thread: an encoding one, as
// a large request takes long to parse.
class InferenceService
    : public v1::Inference::WithRawCallbackMethod_Generate<
          v1::Inference::WithRawCallbackMethod_Tokenize<
              v1::Inference::WithRawCallbackMethod_Detokenize<
                  v1::Inference::WithCallbackMethod_ListModels<
                      v1::Inference::WithRawCallbackMethod_Embed<
                          v1::Inference::Service>>>>> {
 public:
  // All must outlive every call. `limits` are those of each answer.
  InferenceService(Pipeline* pipeline, const GroupSet* groups,
                   const AccessControl* access, RequestLedger* ledger,
                   const StreamWatch::Limits& limits = {});

  grpc::ServerWriteReactor<grpc::ByteBuffer>* Generate(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request) override;
  grpc::ServerUnaryReactor* Tokenize(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Detokenize(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListModels(
      grpc::CallbackServerContext* context,
      const v1::ListModelsRequest* request,
      v1::ListModelsResponse* response) override;
  grpc::ServerUnaryReactor* Embed(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;

 private:
  std::shared_ptr<AccessRecord> Begin(
      const char* method, const grpc::CallbackServerContext& context) const;
  UnaryContext BeginUnary(const char* method,
                          grpc::CallbackServerContext* context) const;
  absl::StatusOr<GenerateSpec> ParseGenerate(
      const grpc::CallbackServerContext& context,
      const grpc::ByteBuffer& request) const;
  absl::StatusOr<EmbedSpec> ParseEmbed(
      const grpc::CallbackServerContext& context,
      const grpc::ByteBuffer& request) const;
  // CANCELLED where nobody waits for it any more.
  absl::StatusOr<PromptSpec> ParseTokenize(
      const grpc::CallbackServerContext& context,
      const grpc::ByteBuffer& request, bool* asks_for_strs) const;
  absl::StatusOr<DetokenizeSpec> ParseDetokenize(
      const grpc::CallbackServerContext& context,
      const grpc::ByteBuffer& request) const;

  Pipeline* const pipeline_;
  const GroupSet* const groups_;
  const AccessControl* const access_;
  RequestLedger* const ledger_;
  const StreamWatch::Limits limits_;
};

}  // namespace lockstep
