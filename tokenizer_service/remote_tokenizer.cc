#include "tokenizer_service/remote_tokenizer.h"

#include <absl/strings/str_cat.h>
#include <grpcpp/grpcpp.h>

#include <optional>
#include <utility>

#include "common/grpc_server.h"
#include "common/grpc_status.h"
#include "common/status_macros.h"
#include "tokenizer_service/incremental_decoder.h"
#include "tokenizer_service/text_check.h"

namespace lockstep {
namespace {

// A call's share of a queue, and twice what a text's length takes.
constexpr absl::Duration kLeastTimeout = absl::Seconds(15);
constexpr int64_t kBytesPerSecond = 1 << 20;

// A service that hangs must not hold the caller's threads for long.
auto DeadlineFor(absl::string_view text) {
  return absl::ToChronoTime(absl::Now() + kLeastTimeout +
                            absl::Seconds(text.size() / kBytesPerSecond));
}

absl::StatusOr<Vocabulary::Kind> FromProto(v1::Vocabulary::Kind kind) {
  switch (kind) {
    case v1::Vocabulary::NONE:
      return Vocabulary::Kind::kNone;
    case v1::Vocabulary::TEXT:
      return Vocabulary::Kind::kText;
    case v1::Vocabulary::BYTE:
      return Vocabulary::Kind::kByte;
    default:
      return absl::FailedPreconditionError(absl::StrCat(
          "its vocabulary has tokens of kind ", static_cast<int>(kind),
          ", which this build does not know."));
  }
}

absl::StatusOr<Vocabulary::Join> FromProto(v1::Vocabulary::Join join) {
  switch (join) {
    case v1::Vocabulary::BYTE_LEVEL:
      return Vocabulary::Join::kByteLevel;
    case v1::Vocabulary::BYTE_FALLBACK:
      return Vocabulary::Join::kByteFallback;
    default:
      return absl::FailedPreconditionError(absl::StrCat(
          "its vocabulary is joined by rule ", static_cast<int>(join),
          ", which this build does not know."));
  }
}

absl::StatusOr<Vocabulary> FromProto(const v1::Vocabulary& message) {
  LOCKSTEP_ASSIGN_OR_RETURN(const auto join, FromProto(message.join()));
  Vocabulary vocabulary(join, message.strip_leading_spaces());
  for (const v1::Vocabulary::Token& token : message.tokens()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const auto kind, FromProto(token.kind()));
    vocabulary.Add(token.bytes(), kind, token.special());
  }
  return vocabulary;
}

TokenizerInfo FromProto(const v1::TokenizerInfo& message) {
  TokenizerInfo info;
  info.vocabulary_size = message.vocabulary_size();
  if (message.has_bos_token_id()) info.bos_token_id = message.bos_token_id();
  info.eos_token_ids.assign(message.eos_token_ids().begin(),
                            message.eos_token_ids().end());
  if (message.has_chat_template()) info.chat_template = message.chat_template();
  return info;
}

absl::Status From(const std::string& address, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("the tokenizer service at ", address, ": ",
                                   status.message()));
}

// What the service says of a text is the client's to read; that it does not
// answer is ours, and its deadline was not the client's.
absl::Status OfCall(const std::string& address, const grpc::Status& status) {
  const absl::Status told = FromGrpc(status);
  if (absl::IsUnavailable(told)) return From(address, told);
  if (!absl::IsDeadlineExceeded(told)) return told;
  return absl::UnavailableError(absl::StrCat(
      "the tokenizer service at ", address, " did not answer in time."));
}

}  // namespace

absl::StatusOr<std::unique_ptr<RemoteTokenizer>> RemoteTokenizer::Connect(
    const std::string& address, absl::Duration timeout, const ClientTls& tls) {
  auto secure_stub = std::make_unique<Stub>(address, ChannelArguments(), tls);
  const auto stub = secure_stub->Get();
  const auto deadline = absl::ToChronoTime(absl::Now() + timeout);

  grpc::ClientContext info_context, vocabulary_context;
  for (grpc::ClientContext* context : {&info_context, &vocabulary_context}) {
    context->set_wait_for_ready(true);
    context->set_deadline(deadline);
  }
  v1::TokenizerInfo info;
  grpc::Status status = stub->GetTokenizerInfo(
      &info_context, v1::GetTokenizerInfoRequest(), &info);
  if (!status.ok()) return From(address, FromGrpc(status));
  v1::Vocabulary message;
  status = stub->GetVocabulary(&vocabulary_context, v1::GetVocabularyRequest(),
                               &message);
  if (!status.ok()) return From(address, FromGrpc(status));

  auto vocabulary = FromProto(message);
  if (!vocabulary.ok()) return From(address, vocabulary.status());
  if (vocabulary->size() != info.vocabulary_size()) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the tokenizer service at ", address, " says it has ",
        info.vocabulary_size(), " ids and lists ", vocabulary->size(), "."));
  }
  return std::unique_ptr<RemoteTokenizer>(
      new RemoteTokenizer(address, std::move(secure_stub), FromProto(info),
                          *std::move(vocabulary)));
}

RemoteTokenizer::RemoteTokenizer(const std::string& address,
                                 std::unique_ptr<Stub> stub, TokenizerInfo info,
                                 Vocabulary vocabulary)
    : address_(address),
      stub_(std::move(stub)),
      info_(std::move(info)),
      vocabulary_(std::move(vocabulary)),
      digest_(vocabulary_.MakeDigest()) {}

absl::StatusOr<std::vector<uint32_t>> RemoteTokenizer::Encode(
    absl::string_view text, bool add_special_tokens) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckText("text", text));
  v1::EncodeRequest request;
  request.set_text(std::string(text));
  request.set_add_special_tokens(add_special_tokens);
  grpc::ClientContext context;
  context.set_deadline(DeadlineFor(text));
  v1::EncodeResponse response;
  LOCKSTEP_RETURN_IF_ERROR(
      OfCall(address_, stub_->Get()->Encode(&context, request, &response)));
  if (response.vocabulary_digest() !=
      std::string(digest_.begin(), digest_.end())) {
    return absl::UnavailableError(absl::StrCat(
        "the tokenizer service at ", address_,
        " has another vocabulary than it had; start the gateway again."));
  }
  return std::vector<uint32_t>(response.token_ids().begin(),
                               response.token_ids().end());
}

absl::StatusOr<std::string> RemoteTokenizer::Decode(
    absl::Span<const uint32_t> ids, bool skip_special_tokens) const {
  IncrementalDecoder decoder(&vocabulary_, skip_special_tokens);
  LOCKSTEP_ASSIGN_OR_RETURN(std::string text, decoder.Add(ids));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string rest, decoder.Finish());
  return text + rest;
}

absl::StatusOr<std::string> RemoteTokenizer::RenderChat(
    absl::string_view context_json) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckText("context_json", context_json));
  v1::RenderChatRequest request;
  request.set_context_json(std::string(context_json));
  grpc::ClientContext context;
  context.set_deadline(DeadlineFor(context_json));
  v1::RenderChatResponse response;
  LOCKSTEP_RETURN_IF_ERROR(
      OfCall(address_,
             stub_->Get()->RenderChat(&context, request, &response)));
  return std::move(*response.mutable_text());
}

}  // namespace lockstep
