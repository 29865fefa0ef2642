#pragma once

#include <absl/status/statusor.h>
#include <grpcpp/grpcpp.h>

#include <string>

#include "common/text_pool.h"
#include "proto/tokenizer.grpc.pb.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// Of a call: the longest text, or context_json, and some room.
inline constexpr int kMaxTokenizerRequestBytes = kMaxTextBytes + (1 << 20);

// lockstep.v1.Tokenizer over any Tokenizer: converts, calls, converts back.
//
//   TokenizerService service(tokenizer.get(),
//                            {.threads = 2, .queue = {.tasks = 256}});
//   auto server = GrpcServer::Start(address, "listen", {&service}, …);
//
// Work on text takes as long as the text is long, so it runs on threads of this
// object and not on gRPC's; with all of them busy and the queue full a call is
// RESOURCE_EXHAUSTED. Requests arrive as bytes, so that it is ours to say what
// is wrong with them. Destroy it after the server has shut down.
class TokenizerService
    : public v1::Tokenizer::WithRawCallbackMethod_Encode<
          v1::Tokenizer::WithRawCallbackMethod_Decode<
              v1::Tokenizer::WithRawCallbackMethod_RenderChat<
                  v1::Tokenizer::WithRawCallbackMethod_GetTokenizerInfo<
                      v1::Tokenizer::WithRawCallbackMethod_GetVocabulary<
                          v1::Tokenizer::Service>>>>> {
 public:
  struct Options {
    int threads;
    TextPool::Limits queue;  // of calls that wait
  };

  // `tokenizer` must outlive this.
  TokenizerService(const Tokenizer* tokenizer, const Options& options);

  grpc::ServerUnaryReactor* Encode(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Decode(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* RenderChat(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetTokenizerInfo(
      grpc::CallbackServerContext* context, const grpc::ByteBuffer* request,
      grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* GetVocabulary(grpc::CallbackServerContext* context,
                                          const grpc::ByteBuffer* request,
                                          grpc::ByteBuffer* response) override;

 private:
  template <typename Request, typename Response>
  using Handler =
      absl::StatusOr<Response> (TokenizerService::*)(const Request&) const;

  // Parses, calls `handler` and answers, on a thread of the pool.
  template <typename Request, typename Response>
  grpc::ServerUnaryReactor* Run(grpc::CallbackServerContext* context,
                                const grpc::ByteBuffer* request,
                                grpc::ByteBuffer* response,
                                Handler<Request, Response> handler);

  absl::StatusOr<v1::EncodeResponse> HandleEncode(
      const v1::EncodeRequest& request) const;
  absl::StatusOr<v1::DecodeResponse> HandleDecode(
      const v1::DecodeRequest& request) const;
  absl::StatusOr<v1::RenderChatResponse> HandleRenderChat(
      const v1::RenderChatRequest& request) const;
  absl::StatusOr<v1::TokenizerInfo> HandleGetTokenizerInfo(
      const v1::GetTokenizerInfoRequest& request) const;
  absl::StatusOr<v1::Vocabulary> HandleGetVocabulary(
      const v1::GetVocabularyRequest& request) const;

  const Tokenizer* const tokenizer_;
  const std::string vocabulary_digest_;  // as it is sent
  TextPool pool_;
};

}  // namespace lockstep
