#include "frontend/grpc/inference_service.h"

#include <optional>
#include <string>
#include <utility>

#include "common/grpc_status.h"
#include "common/status_macros.h"
#include "common/unknown_fields.h"
#include "common/wire.h"
#include "frontend/grpc/generate_reactor.h"
#include "frontend/grpc/request_parser.h"

namespace lockstep {
namespace {

grpc::ServerUnaryReactor* FinishNow(grpc::CallbackServerContext* context,
                                    const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

absl::Status CheckAwaited(const grpc::CallbackServerContext& context) {
  if (!context.IsCancelled()) return absl::OkStatus();
  return absl::CancelledError("the client cancelled the call.");
}

AccessControl::Authorization AuthorizationOf(
    const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("authorization");
  if (found == metadata.end()) return std::nullopt;
  return absl::string_view(found->second.data(), found->second.size());
}

// A stream that ends before it begins.
class RefusedStream : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  explicit RefusedStream(const absl::Status& status) { Finish(ToGrpc(status)); }

 private:
  void OnDone() override { delete this; }
};

}  // namespace

InferenceService::InferenceService(Pipeline* pipeline, const GroupSet* groups,
                                   const AccessControl* access)
    : pipeline_(pipeline), groups_(groups), access_(access) {}

grpc::ServerWriteReactor<grpc::ByteBuffer>* InferenceService::Generate(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  auto grant = access_->Enter(AuthorizationOf(*context));
  if (!grant.ok()) return new RefusedStream(grant.status());
  auto* reactor = new GenerateReactor(
      pipeline_, request->Length(), context->deadline(),
      [=, this] { return ParseGenerate(*context, *request); },
      {.grant = *std::move(grant)});
  reactor->Start();
  return reactor;
}

grpc::ServerUnaryReactor* InferenceService::Tokenize(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  const auto grant = access_->Enter(AuthorizationOf(*context));
  if (!grant.ok()) return FinishNow(context, grant.status());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  pipeline_->Tokenize(
      request->Length(),
      [=, this] { return ParseTokenize(*context, *request); },
      AfterRelease(
          *grant, [reactor, response](absl::StatusOr<EncodedPrompt> encoded) {
            if (encoded.ok()) {
              v1::TokenizeResponse message;
              message.mutable_token_ids()->Add(encoded->token_ids.begin(),
                                               encoded->token_ids.end());
              if (encoded->rendered.has_value()) {
                message.set_text(*std::move(encoded->rendered));
              }
              *response = SerializeMessage(message);
            }
            reactor->Finish(ToGrpc(encoded.status()));
          }));
  return reactor;
}

grpc::ServerUnaryReactor* InferenceService::Detokenize(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  const auto grant = access_->Enter(AuthorizationOf(*context));
  if (!grant.ok()) return FinishNow(context, grant.status());
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  pipeline_->Detokenize(
      request->Length(),
      [=, this] { return ParseDetokenize(*context, *request); },
      AfterRelease(*grant,
                   [reactor, response](absl::StatusOr<std::string> text) {
                     if (text.ok()) {
                       v1::DetokenizeResponse message;
                       message.set_text(*std::move(text));
                       *response = SerializeMessage(message);
                     }
                     reactor->Finish(ToGrpc(text.status()));
                   }));
  return reactor;
}

grpc::ServerUnaryReactor* InferenceService::ListModels(
    grpc::CallbackServerContext* context, const v1::ListModelsRequest* request,
    v1::ListModelsResponse* response) {
  absl::Status status = access_->Check(AuthorizationOf(*context));
  if (status.ok()) status = RefuseUnknownFields(*request);
  if (!status.ok()) return FinishNow(context, status);
  const auto served = groups_->Model();
  if (!served.ok()) return FinishNow(context, served.status());
  v1::ListModelsResponse::Model& model = *response->add_models();
  model.set_name(served->name);
  model.set_max_context_tokens(served->max_context_tokens);
  model.set_vocabulary_size(served->vocabulary_size);
  return FinishNow(context, absl::OkStatus());
}

absl::StatusOr<GenerateSpec> InferenceService::ParseGenerate(
    const grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request) const {
  v1::GenerateRequest message;
  LOCKSTEP_RETURN_IF_ERROR(ParseMessage(request, &message));
  LOCKSTEP_ASSIGN_OR_RETURN(const ServedModel model, groups_->Model());
  LOCKSTEP_ASSIGN_OR_RETURN(GenerateSpec spec,
                            ParseGenerateRequest(message, model));
  spec.deadline = context.deadline();
  return spec;
}

absl::StatusOr<PromptSpec> InferenceService::ParseTokenize(
    const grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckAwaited(context));
  v1::TokenizeRequest message;
  LOCKSTEP_RETURN_IF_ERROR(ParseMessage(request, &message));
  LOCKSTEP_ASSIGN_OR_RETURN(const ServedModel model, groups_->Model());
  return ParseTokenizeRequest(message, model);
}

absl::StatusOr<DetokenizeSpec> InferenceService::ParseDetokenize(
    const grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckAwaited(context));
  v1::DetokenizeRequest message;
  LOCKSTEP_RETURN_IF_ERROR(ParseMessage(request, &message));
  LOCKSTEP_ASSIGN_OR_RETURN(const ServedModel model, groups_->Model());
  return ParseDetokenizeRequest(message, model);
}

}  // namespace lockstep
