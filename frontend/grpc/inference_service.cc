#include "frontend/grpc/inference_service.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_replace.h>
#include <absl/strings/strip.h>
#include <absl/time/clock.h>

#include <memory>
#include <string>
#include <utility>

#include "common/grpc_server.h"
#include "common/grpc_status.h"
#include "common/request_id.h"
#include "common/status_macros.h"
#include "common/tracing/call_metadata.h"
#include "common/unknown_fields.h"
#include "common/wire.h"
#include "frontend/generation/prompt_encoder.h"
#include "frontend/generation/spec_check.h"
#include "frontend/grpc/embed_call.h"
#include "frontend/grpc/generate_reactor.h"
#include "frontend/grpc/request_parser.h"
#include "frontend/grpc/unary_call.h"
#include "frontend/routing/served_model.h"

namespace lockstep {
namespace {

grpc::ServerUnaryReactor* Refuse(UnaryCall* call, const absl::Status& why) {
  call->End(why, /*answer_bytes=*/0);
  return call;
}

// Of "ipv4:10.0.0.9:4711" and "ipv6:%5B::1%5D:4711" the address.
std::string ClientOf(const grpc::CallbackServerContext& context) {
  const std::string peer = absl::StrReplaceAll(
      context.peer(),
      {{"%5B", "["}, {"%5D", "]"}, {"ipv4:", ""}, {"ipv6:", ""}});
  absl::string_view host = absl::string_view(peer).substr(0, peer.rfind(':'));
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return std::string(host);
}

absl::Status CheckAwaited(const grpc::CallbackServerContext& context) {
  if (!context.IsCancelled()) return absl::OkStatus();
  return absl::CancelledError("the client cancelled the call.");
}

// The call's metadata may name a request whose message does not.
template <typename Request>
absl::Status TakeRequestId(const grpc::CallbackServerContext& context,
                           Request* request) {
  const std::string id = MetadataOf(context, kRequestIdMetadata);
  if (id.empty()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(CheckRequestId(kRequestIdMetadata, id));
  if (!request->has_request_id()) request->set_request_id(id);
  return absl::OkStatus();
}

// As protobuf writes it, and the lengths before it; and all else there is.
constexpr size_t kBytesOfValue = 4;
constexpr size_t kBytesAround = 16;
constexpr size_t kBytesOfRest = 1024;

// Before it is computed: a message that is too large is sent to nobody.
absl::Status CheckAnswerFits(const EmbedSpec& spec) {
  const size_t values = NumValues(spec);
  const size_t bytes_each = kBytesOfValue * values + kBytesAround;
  const size_t most = (kMaxMessageBytes - kBytesOfRest) / bytes_each;
  if (spec.inputs.size() <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("inputs holds ", spec.inputs.size(), " inputs of ", values,
                   " values each, but an answer has at most ", kMaxMessageBytes,
                   " bytes; send at most ", most, " at a time."));
}

// Empty where there is none.
absl::string_view AuthorizationOf(const grpc::CallbackServerContext& context) {
  const auto& metadata = context.client_metadata();
  const auto found = metadata.find("authorization");
  if (found == metadata.end()) return "";
  return {found->second.data(), found->second.size()};
}

}  // namespace

InferenceService::InferenceService(Pipeline* pipeline, const GroupSet* groups,
                                   const AccessControl* access,
                                   RequestLedger* ledger,
                                   const StreamWatch::Limits& limits)
    : pipeline_(pipeline),
      groups_(groups),
      access_(access),
      ledger_(ledger),
      limits_(limits) {}

std::shared_ptr<AccessRecord> InferenceService::Begin(
    const char* method, const grpc::CallbackServerContext& context) const {
  AccessRecord::Request entry;
  entry.surface = "grpc";
  entry.route = method;
  entry.client = ClientOf(context);
  entry.request_id = RequestIdOf(context);
  entry.trace = TraceOf(context);
  entry.arrived = absl::Now();
  return ledger_->Begin(std::move(entry));
}

UnaryContext InferenceService::BeginUnary(
    const char* method, grpc::CallbackServerContext* context) const {
  return {.grpc = context,
          .record = Begin(method, *context),
          .timers = &pipeline_->groups().timers(),
          .limits = limits_};
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* InferenceService::Generate(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request) {
  const auto record = Begin("Generate", *context);
  auto grant = access_->Enter(AuthorizationOf(*context));
  if (!grant.ok()) {
    record->SetGrpcStatus(grant.status());
    return new RefusedStream<grpc::ByteBuffer>(grant.status());
  }
  return GenerateReactor::Start(
      pipeline_, limits_, request->Length(), context,
      [=, this] { return ParseGenerate(*context, *request); },
      {.grant = *std::move(grant), .record = record});
}

grpc::ServerUnaryReactor* InferenceService::Tokenize(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  UnaryCall* const call = UnaryCall::Start(BeginUnary("Tokenize", context));
  const auto grant = access_->Enter(AuthorizationOf(*context));
  if (!grant.ok()) return Refuse(call, grant.status());
  const auto asks_for_strs = std::make_shared<bool>(false);
  pipeline_->Tokenize(
      request->Length(),
      [=, this] {
        return ParseTokenize(*context, *request, asks_for_strs.get());
      },
      AfterRelease(*grant, [=, this](absl::StatusOr<EncodedPrompt> encoded) {
        if (encoded.ok()) {
          v1::TokenizeResponse message;
          message.mutable_token_ids()->Add(encoded->token_ids.begin(),
                                           encoded->token_ids.end());
          if (encoded->rendered.has_value()) {
            message.set_text(*std::move(encoded->rendered));
          }
          if (*asks_for_strs) {
            for (std::string& text : TokenStrings(
                     encoded->token_ids, pipeline_->tokenizer().vocabulary())) {
              message.add_token_strs(std::move(text));
            }
          }
          *response = SerializeMessage(message);
        }
        call->End(encoded.status(), response->Length());
      }));
  return call;
}

grpc::ServerUnaryReactor* InferenceService::Detokenize(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  UnaryCall* const call = UnaryCall::Start(BeginUnary("Detokenize", context));
  const auto grant = access_->Enter(AuthorizationOf(*context));
  if (!grant.ok()) return Refuse(call, grant.status());
  pipeline_->Detokenize(
      request->Length(),
      [=, this] { return ParseDetokenize(*context, *request); },
      AfterRelease(*grant, [call, response](absl::StatusOr<std::string> text) {
        if (text.ok()) {
          v1::DetokenizeResponse message;
          message.set_text(*std::move(text));
          *response = SerializeMessage(message);
        }
        call->End(text.status(), response->Length());
      }));
  return call;
}

grpc::ServerUnaryReactor* InferenceService::Embed(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  UnaryContext unary = BeginUnary("Embed", context);
  auto grant = access_->Enter(AuthorizationOf(*context));
  if (!grant.ok()) {
    return Refuse(UnaryCall::Start(std::move(unary)), grant.status());
  }
  const std::shared_ptr<AccessRecord> record = unary.record;
  return StartEmbedCall(
      pipeline_, std::move(unary), request->Length(),
      [=, this] { return ParseEmbed(*context, *request); },
      {.grant = *std::move(grant), .record = record}, response);
}

grpc::ServerUnaryReactor* InferenceService::ListModels(
    grpc::CallbackServerContext* context, const v1::ListModelsRequest* request,
    v1::ListModelsResponse* response) {
  UnaryCall* const call = UnaryCall::Start(BeginUnary("ListModels", context));
  const auto served = groups_->Model();
  absl::Status status = access_->Check(AuthorizationOf(*context));
  status.Update(RefuseUnknownFields(*request));
  status.Update(served.status());
  if (status.ok()) {
    v1::ListModelsResponse::Model& model = *response->add_models();
    model.set_name(served->name);
    model.set_max_context_tokens(served->max_context_tokens);
    model.set_vocabulary_size(served->vocabulary_size);
    if (served->embedding.has_value()) {
      *model.mutable_embedding() = *served->embedding;
    }
    model.set_no_generation(served->no_generation);
    *model.mutable_default_sampling() = served->default_sampling;
    model.set_system_fingerprint(SystemFingerprint(*served));
  }
  call->End(status, response->ByteSizeLong());
  return call;
}

absl::StatusOr<GenerateSpec> InferenceService::ParseGenerate(
    const grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request) const {
  v1::GenerateRequest message;
  LOCKSTEP_RETURN_IF_ERROR(ParseMessage(request, &message));
  LOCKSTEP_RETURN_IF_ERROR(TakeRequestId(context, &message));
  LOCKSTEP_ASSIGN_OR_RETURN(const ServedModel model, groups_->Model());
  LOCKSTEP_ASSIGN_OR_RETURN(GenerateSpec spec,
                            ParseGenerateRequest(message, model));
  spec.deadline = context.deadline();
  return spec;
}

absl::StatusOr<EmbedSpec> InferenceService::ParseEmbed(
    const grpc::CallbackServerContext& context,
    const grpc::ByteBuffer& request) const {
  v1::EmbedRequest message;
  LOCKSTEP_RETURN_IF_ERROR(ParseMessage(request, &message));
  LOCKSTEP_RETURN_IF_ERROR(TakeRequestId(context, &message));
  LOCKSTEP_ASSIGN_OR_RETURN(const ServedModel model, groups_->Model());
  LOCKSTEP_ASSIGN_OR_RETURN(EmbedSpec spec, ParseEmbedRequest(message, model));
  LOCKSTEP_RETURN_IF_ERROR(CheckAnswerFits(spec));
  spec.each.deadline = context.deadline();
  return spec;
}

absl::StatusOr<PromptSpec> InferenceService::ParseTokenize(
    const grpc::CallbackServerContext& context, const grpc::ByteBuffer& request,
    bool* asks_for_strs) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckAwaited(context));
  v1::TokenizeRequest message;
  LOCKSTEP_RETURN_IF_ERROR(ParseMessage(request, &message));
  LOCKSTEP_ASSIGN_OR_RETURN(const ServedModel model, groups_->Model());
  *asks_for_strs = message.return_token_strs();
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
