#include "bench/gateway/echo_worker.h"

#include <absl/strings/str_cat.h>

#include <vector>

#include "common/status_macros.h"

namespace lockstep::bench {
namespace {

constexpr uint32_t kContextTokens = 1 << 20;

grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace

// One answer, one write at a time: accepted, the tokens, finish, summary.
// Deletes itself when gRPC is done with it, which is after Finish.
class EchoWorker::Call
    : public grpc::ServerWriteReactor<v1::WorkerGenerateResponse> {
 public:
  Call(EchoWorker* worker, const v1::WorkerGenerateRequest& request)
      : worker_(*worker),
        ids_(request.prompt_token_ids().begin(),
             request.prompt_token_ids().end()),
        tokens_(request.sampling().max_tokens()),
        stream_(request.sampling().seed()),
        clock_(worker->pace_, &worker->pacer_) {
    message_.mutable_accepted()->set_request_id(request.request_id());
    message_.mutable_accepted()->set_prompt_tokens(ids_.size());
    message_.mutable_accepted()->set_seed(stream_);
    StartWrite(&message_);
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    if (sent_ >= tokens_) return WriteNext();
    clock_.AtNext([this] { WriteNext(); });
  }

  void OnDone() override { delete this; }

 private:
  void WriteNext() {
    if (sent_ < tokens_) {
      WriteToken();
    } else if (!message_.has_finish() && !message_.has_summary()) {
      message_.mutable_finish()->set_reason(v1::LENGTH);
      StartWrite(&message_);
    } else if (!message_.has_summary()) {
      message_.mutable_summary();
      StartWrite(&message_);
    } else {
      Finish(grpc::Status::OK);
    }
  }

  void WriteToken() {
    v1::TokenDelta& delta = *message_.mutable_delta();
    delta.clear_token_ids();
    delta.add_token_ids(ids_[sent_ % ids_.size()]);
    worker_.sent_->Set(stream_, sent_++, SteadyClock::now());
    StartWrite(&message_);
  }

  EchoWorker& worker_;
  const std::vector<uint32_t> ids_;
  const uint32_t tokens_;
  const uint64_t stream_;
  uint32_t sent_ = 0;
  EchoClock clock_;
  v1::WorkerGenerateResponse message_;
};

absl::StatusOr<std::unique_ptr<EchoWorker>> EchoWorker::Start(
    uint32_t vocabulary_size, SentTimes* sent) {
  std::unique_ptr<EchoWorker> worker(new EchoWorker(vocabulary_size, sent));
  LOCKSTEP_ASSIGN_OR_RETURN(
      worker->server_,
      GrpcServer::Start("127.0.0.1:0", "listen", {worker.get()},
                        {v1::Worker::service_full_name()}));
  worker->server_->SetServing(true);
  return worker;
}

EchoWorker::~EchoWorker() {
  if (server_ != nullptr) server_->Shutdown(/*grace_ms=*/0);
}

std::string EchoWorker::address() const {
  return absl::StrCat("127.0.0.1:", server_->port());
}

grpc::ServerWriteReactor<v1::WorkerGenerateResponse>* EchoWorker::Generate(
    grpc::CallbackServerContext* /*context*/,
    const v1::WorkerGenerateRequest* request) {
  return new Call(this, *request);
}

grpc::ServerUnaryReactor* EchoWorker::GetModelInfo(
    grpc::CallbackServerContext* context,
    const v1::GetModelInfoRequest* /*request*/, v1::ModelInfo* response) {
  response->set_name("echo");
  response->set_vocabulary_size(vocabulary_size_);
  response->set_max_context_tokens(kContextTokens);
  return Finish(context);
}

grpc::ServerUnaryReactor* EchoWorker::GetServerInfo(
    grpc::CallbackServerContext* context,
    const v1::GetServerInfoRequest* /*request*/, v1::ServerInfo* response) {
  response->set_version("echo");
  response->set_state(v1::SERVING);
  return Finish(context);
}

}  // namespace lockstep::bench
