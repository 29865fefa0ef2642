#include "frontend/grpc/embed_call.h"

#include <absl/strings/str_cat.h>

#include <memory>
#include <string>
#include <utility>

#include "common/status_macros.h"
#include "common/wire.h"
#include "frontend/generation/embed_batch.h"
#include "frontend/grpc/responses.h"
#include "proto/inference.pb.h"

namespace lockstep {
namespace {

class EmbedCall final : public UnaryCall {
 public:
  EmbedCall(Pipeline* pipeline, UnaryContext context, size_t request_bytes,
            Parser<EmbedSpec> parse, Caller caller, grpc::ByteBuffer* response)
      : UnaryCall(std::move(context)),
        response_(response),
        parse_(std::move(parse)),
        batch_(std::make_shared<EmbedBatch>(
            pipeline, request_bytes, [this] { return Parse(); },
            std::move(caller),
            [this](absl::StatusOr<EmbedResult> result) {
              Answer(std::move(result));
            })) {}

  void Start() {
    KeepAlive();
    batch_->Start();
  }

 private:
  void OnCancel() override {
    batch_->Cancel(absl::CancelledError("the client cancelled the call."));
  }

  absl::StatusOr<EmbedSpec> Parse() {
    LOCKSTEP_ASSIGN_OR_RETURN(EmbedSpec spec, parse_());
    message_.set_request_id(spec.each.request_id);
    message_.set_model(spec.each.model.name);
    return spec;
  }

  void Answer(absl::StatusOr<EmbedResult> result) {
    size_t bytes = 0;
    if (result.ok()) {
      for (v1::Embedding& embedding : result->embeddings) {
        *message_.add_embeddings() = std::move(embedding);
      }
      *message_.mutable_usage() = std::move(result->usage);
      *response_ = SerializeMessage(message_);
      bytes = response_->Length();
      if (result->failovers > 0) {
        context()->AddTrailingMetadata(kFailoversTrailer,
                                       absl::StrCat(result->failovers));
      }
    }
    End(result.status(), bytes);
  }

  grpc::ByteBuffer* const response_;
  const Parser<EmbedSpec> parse_;
  v1::EmbedResponse message_;
  const std::shared_ptr<EmbedBatch> batch_;
};

}  // namespace

grpc::ServerUnaryReactor* StartEmbedCall(Pipeline* pipeline,
                                         UnaryContext context,
                                         size_t request_bytes,
                                         Parser<EmbedSpec> parse, Caller caller,
                                         grpc::ByteBuffer* response) {
  const auto call = std::make_shared<EmbedCall>(pipeline, std::move(context),
                                                request_bytes, std::move(parse),
                                                std::move(caller), response);
  call->Start();
  return call.get();
}

}  // namespace lockstep
