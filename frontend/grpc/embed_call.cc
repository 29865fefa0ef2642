#include "frontend/grpc/embed_call.h"

#include <absl/strings/str_cat.h>

#include <memory>
#include <string>
#include <utility>

#include "common/grpc_status.h"
#include "common/status_macros.h"
#include "common/wire.h"
#include "frontend/generation/embed_batch.h"
#include "frontend/grpc/responses.h"
#include "frontend/ledger/access_record.h"
#include "proto/inference.pb.h"

namespace lockstep {
namespace {

class EmbedCall final : public grpc::ServerUnaryReactor {
 public:
  EmbedCall(Pipeline* pipeline, grpc::CallbackServerContext* context,
            size_t request_bytes, Parser<EmbedSpec> parse, Caller caller,
            grpc::ByteBuffer* response)
      : context_(context),
        record_(caller.record),
        response_(response),
        parse_(std::move(parse)),
        batch_(std::make_shared<EmbedBatch>(
            pipeline, request_bytes, [this] { return Parse(); },
            std::move(caller),
            [this](absl::StatusOr<EmbedResult> result) {
              End(std::move(result));
            })) {}

  void Start() { batch_->Start(); }

 private:
  void OnCancel() override {
    batch_->Cancel(absl::CancelledError("the client cancelled the call."));
  }
  void OnDone() override { delete this; }

  absl::StatusOr<EmbedSpec> Parse() {
    LOCKSTEP_ASSIGN_OR_RETURN(EmbedSpec spec, parse_());
    message_.set_request_id(spec.each.request_id);
    message_.set_model(spec.each.model.name);
    return spec;
  }

  void End(absl::StatusOr<EmbedResult> result) {
    if (result.ok()) {
      for (v1::Embedding& embedding : result->embeddings) {
        *message_.add_embeddings() = std::move(embedding);
      }
      *message_.mutable_usage() = std::move(result->usage);
      *response_ = SerializeMessage(message_);
      if (result->failovers > 0) {
        context_->AddTrailingMetadata(kFailoversTrailer,
                                      absl::StrCat(result->failovers));
      }
    }
    record_->SetGrpcStatus(result.status());
    Finish(ToGrpc(result.status()));
  }

  grpc::CallbackServerContext* const context_;
  const std::shared_ptr<AccessRecord> record_;
  grpc::ByteBuffer* const response_;
  const Parser<EmbedSpec> parse_;
  v1::EmbedResponse message_;
  const std::shared_ptr<EmbedBatch> batch_;
};

}  // namespace

grpc::ServerUnaryReactor* StartEmbedCall(Pipeline* pipeline,
                                         grpc::CallbackServerContext* context,
                                         size_t request_bytes,
                                         Parser<EmbedSpec> parse, Caller caller,
                                         grpc::ByteBuffer* response) {
  auto* const call =
      new EmbedCall(pipeline, context, request_bytes, std::move(parse),
                    std::move(caller), response);
  call->Start();
  return call;
}

}  // namespace lockstep
