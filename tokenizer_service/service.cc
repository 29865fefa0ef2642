#include "tokenizer_service/service.h"

#include <absl/strings/str_cat.h>

#include <string>
#include <utility>
#include <vector>

#include "common/digest.h"
#include "common/grpc_status.h"
#include "common/status_macros.h"
#include "common/unknown_fields.h"
#include "common/wire.h"

namespace lockstep {
namespace {

v1::Vocabulary::Join ToProto(Vocabulary::Join join) {
  switch (join) {
    case Vocabulary::Join::kByteLevel:
      return v1::Vocabulary::BYTE_LEVEL;
    case Vocabulary::Join::kByteFallback:
      return v1::Vocabulary::BYTE_FALLBACK;
  }
  return v1::Vocabulary::JOIN_UNSPECIFIED;
}

v1::Vocabulary::Kind ToProto(Vocabulary::Kind kind) {
  switch (kind) {
    case Vocabulary::Kind::kNone:
      return v1::Vocabulary::NONE;
    case Vocabulary::Kind::kText:
      return v1::Vocabulary::TEXT;
    case Vocabulary::Kind::kByte:
      return v1::Vocabulary::BYTE;
  }
  return v1::Vocabulary::KIND_UNSPECIFIED;
}

std::string ToBytes(const Digest& digest) {
  return std::string(digest.begin(), digest.end());
}

template <typename Request>
absl::StatusOr<Request> Parse(const grpc::ByteBuffer& buffer) {
  Request request;
  LOCKSTEP_RETURN_IF_ERROR(ParseMessage(buffer, &request));
  LOCKSTEP_RETURN_IF_ERROR(RefuseUnknownFields(request));
  return request;
}

}  // namespace

TokenizerService::TokenizerService(const Tokenizer* tokenizer,
                                   const Options& options)
    : tokenizer_(tokenizer),
      vocabulary_digest_(ToBytes(tokenizer->vocabulary().MakeDigest())),
      pool_("text", options.threads, options.queue) {}

template <typename Request, typename Response>
grpc::ServerUnaryReactor* TokenizerService::Run(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response, Handler<Request, Response> handler) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const absl::Status queued = pool_.Run(
      request->Length(), [this, context, request, response, handler, reactor] {
        if (context->IsCancelled()) {
          reactor->Finish(grpc::Status::CANCELLED);
          return;
        }
        const auto parsed = Parse<Request>(*request);
        if (!parsed.ok()) {
          reactor->Finish(ToGrpc(parsed.status()));
          return;
        }
        const auto result = (this->*handler)(*parsed);
        if (result.ok()) *response = SerializeMessage(*result);
        reactor->Finish(ToGrpc(result.status()));
      });
  if (!queued.ok()) reactor->Finish(ToGrpc(queued));
  return reactor;
}

grpc::ServerUnaryReactor* TokenizerService::Encode(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Run(context, request, response, &TokenizerService::HandleEncode);
}

grpc::ServerUnaryReactor* TokenizerService::Decode(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Run(context, request, response, &TokenizerService::HandleDecode);
}

grpc::ServerUnaryReactor* TokenizerService::RenderChat(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Run(context, request, response, &TokenizerService::HandleRenderChat);
}

grpc::ServerUnaryReactor* TokenizerService::GetTokenizerInfo(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Run(context, request, response,
             &TokenizerService::HandleGetTokenizerInfo);
}

grpc::ServerUnaryReactor* TokenizerService::GetVocabulary(
    grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
    grpc::ByteBuffer* response) {
  return Run(context, request, response,
             &TokenizerService::HandleGetVocabulary);
}

absl::StatusOr<v1::EncodeResponse> TokenizerService::HandleEncode(
    const v1::EncodeRequest& request) const {
  const bool add_special_tokens =
      !request.has_add_special_tokens() || request.add_special_tokens();
  LOCKSTEP_ASSIGN_OR_RETURN(
      const std::vector<uint32_t> ids,
      tokenizer_->Encode(request.text(), add_special_tokens));
  v1::EncodeResponse response;
  response.mutable_token_ids()->Add(ids.begin(), ids.end());
  response.set_vocabulary_digest(vocabulary_digest_);
  return response;
}

absl::StatusOr<v1::DecodeResponse> TokenizerService::HandleDecode(
    const v1::DecodeRequest& request) const {
  if (request.token_ids_size() > kMaxDecodedIds) {
    return absl::InvalidArgumentError(
        absl::StrCat("token_ids has ", request.token_ids_size(),
                     " ids, more than the ", kMaxDecodedIds, " allowed."));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(
      std::string text,
      tokenizer_->Decode(request.token_ids(), request.skip_special_tokens()));
  v1::DecodeResponse response;
  response.set_text(std::move(text));
  return response;
}

absl::StatusOr<v1::RenderChatResponse> TokenizerService::HandleRenderChat(
    const v1::RenderChatRequest& request) const {
  LOCKSTEP_ASSIGN_OR_RETURN(std::string text,
                            tokenizer_->RenderChat(request.context_json()));
  v1::RenderChatResponse response;
  response.set_text(std::move(text));
  return response;
}

absl::StatusOr<v1::TokenizerInfo> TokenizerService::HandleGetTokenizerInfo(
    const v1::GetTokenizerInfoRequest& /*request*/) const {
  const TokenizerInfo& info = tokenizer_->info();
  v1::TokenizerInfo response;
  response.set_vocabulary_size(info.vocabulary_size);
  if (info.bos_token_id.has_value()) {
    response.set_bos_token_id(*info.bos_token_id);
  }
  response.mutable_eos_token_ids()->Add(info.eos_token_ids.begin(),
                                        info.eos_token_ids.end());
  if (info.chat_template.has_value()) {
    response.set_chat_template(*info.chat_template);
  }
  response.set_vocabulary_digest(vocabulary_digest_);
  return response;
}

absl::StatusOr<v1::Vocabulary> TokenizerService::HandleGetVocabulary(
    const v1::GetVocabularyRequest& /*request*/) const {
  const Vocabulary& vocabulary = tokenizer_->vocabulary();
  v1::Vocabulary response;
  response.set_join(ToProto(vocabulary.join()));
  response.set_strip_leading_spaces(vocabulary.strip_leading_spaces());
  response.mutable_tokens()->Reserve(vocabulary.size());
  for (uint32_t id = 0; id < vocabulary.size(); ++id) {
    const Vocabulary::Token token = vocabulary.token(id);
    v1::Vocabulary::Token* entry = response.add_tokens();
    entry->set_bytes(std::string(token.bytes));
    entry->set_kind(ToProto(token.kind));
    entry->set_special(token.special);
  }
  return response;
}

}  // namespace lockstep
