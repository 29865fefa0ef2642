#include "tests/testing/fake_worker.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

#include <utility>

#include "common/grpc_status.h"

namespace lockstep::testing {

v1::WorkerGenerateResponse AcceptedMessage(
    const v1::WorkerGenerateRequest& request) {
  v1::WorkerGenerateResponse message;
  message.mutable_accepted()->set_request_id(request.request_id());
  message.mutable_accepted()->set_prompt_tokens(
      request.prompt_token_ids_size());
  message.mutable_accepted()->set_seed(request.sampling().seed());
  return message;
}

v1::WorkerGenerateResponse DeltaMessage(uint32_t index,
                                        const std::string& bytes) {
  v1::WorkerGenerateResponse message;
  message.mutable_delta()->set_index(index);
  for (const char c : bytes) {
    message.mutable_delta()->add_token_ids(static_cast<uint8_t>(c));
  }
  return message;
}

v1::WorkerGenerateResponse FinishMessage(uint32_t index,
                                         v1::FinishReason reason) {
  v1::WorkerGenerateResponse message;
  message.mutable_finish()->set_index(index);
  message.mutable_finish()->set_reason(reason);
  message.mutable_finish()->mutable_usage()->set_cached_tokens(1);
  return message;
}

v1::WorkerGenerateResponse SummaryMessage() {
  v1::WorkerGenerateResponse message;
  message.mutable_summary()->mutable_usage()->set_cached_tokens(1);
  message.mutable_summary()->mutable_timing()->set_last_token_us(9);
  return message;
}

FakeAnswer Say(const v1::WorkerGenerateRequest& request,
               const std::string& text) {
  FakeAnswer answer;
  answer.messages.push_back(AcceptedMessage(request));
  for (const char c : text) {
    answer.messages.push_back(DeltaMessage(0, {c}));
  }
  answer.messages.push_back(FinishMessage(0, v1::LENGTH));
  answer.messages.push_back(SummaryMessage());
  return answer;
}

FakeAnswer Embed(const v1::WorkerGenerateRequest& request) {
  FakeAnswer answer;
  answer.messages = {AcceptedMessage(request), {}, SummaryMessage()};
  v1::Embedding& embedding = *answer.messages[1].mutable_embedding();
  embedding.add_values(request.prompt_token_ids_size());
  embedding.add_values(*request.prompt_token_ids().rbegin());
  answer.messages[2].mutable_summary()->mutable_usage()->set_prompt_tokens(
      request.prompt_token_ids_size());
  return answer;
}

// Walks through a FakeAnswer, one write at a time. Its state is the worker's to
// lock.
class FakeWorker::Call
    : public grpc::ServerWriteReactor<v1::WorkerGenerateResponse> {
 public:
  Call(FakeWorker* worker, std::string request_id, FakeAnswer answer)
      : worker_(worker),
        request_id_(std::move(request_id)),
        answer_(std::move(answer)) {}

  void OnWriteDone(bool ok) override {
    {
      absl::MutexLock lock(&worker_->mutex_);
      if (ok) ++worker_->messages_written_;
      if (!ok) is_cancelled_ = true;
    }
    Advance();
  }

  void OnCancel() override {
    bool was_waiting = false;
    {
      absl::MutexLock lock(&worker_->mutex_);
      is_cancelled_ = true;
      ++worker_->cancels_;
      was_waiting = std::exchange(is_waiting_, false);
    }
    if (was_waiting) Advance();
  }

  // With the worker's lock. True: Advance must be called, and the call does not
  // end before it is.
  bool TakeAbort() {
    is_aborted_ = true;
    return answer_.then == FakeAnswer::Then::kAwaitAbort &&
           std::exchange(is_waiting_, false);
  }

  void OnDone() override {
    {
      absl::MutexLock lock(&worker_->mutex_);
      worker_->calls_.erase(request_id_);
    }
    delete this;
  }

  void Advance() {
    const v1::WorkerGenerateResponse* message = nullptr;
    {
      absl::MutexLock lock(&worker_->mutex_);
      if (!is_cancelled_) {
        if (next_ == answer_.messages.size() && !MayPass()) {
          is_waiting_ = true;
          return;
        }
        if (next_ < answer_.messages.size()) {
          message = &answer_.messages[next_++];
        }
      }
    }
    if (message != nullptr) {
      StartWrite(message);
    } else {
      Finish(ToGrpc(answer_.status));
    }
  }

 private:
  // At the end of the messages: whether the answer goes on to its status.
  bool MayPass() {
    if (answer_.then == FakeAnswer::Then::kAwaitAbort && is_aborted_) {
      answer_.then = FakeAnswer::Then::kFinish;
      for (auto& message : answer_.after_abort) {
        answer_.messages.push_back(std::move(message));
      }
    }
    return answer_.then == FakeAnswer::Then::kFinish;
  }

  FakeWorker* const worker_;
  const std::string request_id_;
  FakeAnswer answer_;
  size_t next_ = 0;  // of the messages
  bool is_waiting_ = false;
  bool is_aborted_ = false;
  bool is_cancelled_ = false;
};

FakeWorker::FakeWorker() {
  model_info_.set_name("fake");
  model_info_.set_max_context_tokens(100);
  model_info_.set_vocabulary_size(259);
  model_info_.mutable_embedding()->set_pooling(v1::LAST_TOKEN);
  model_info_.mutable_embedding()->set_dimensions(2);
  server_info_.set_version("fake");
  server_info_.set_num_pages(100);
  server_info_.set_page_size_tokens(16);
}

FakeWorker::~FakeWorker() {
  if (server_ != nullptr) Stop();
}

void FakeWorker::set_script(Script script) {
  absl::MutexLock lock(&mutex_);
  script_ = std::move(script);
}

void FakeWorker::Start() {
  auto server = GrpcServer::Start(absl::StrCat("127.0.0.1:", port_), "port",
                                  {this}, {v1::Worker::service_full_name()});
  CHECK(server.ok()) << server.status();
  server_ = *std::move(server);
  port_ = server_->port();
  server_->SetServing(true);
}

void FakeWorker::Stop() {
  server_->Shutdown(0);
  server_ = nullptr;
}

std::string FakeWorker::address() const {
  return absl::StrCat("127.0.0.1:", port_);
}

std::vector<v1::WorkerGenerateRequest> FakeWorker::requests() const {
  absl::MutexLock lock(&mutex_);
  return requests_;
}

std::vector<v1::AbortRequest> FakeWorker::aborts() const {
  absl::MutexLock lock(&mutex_);
  return aborts_;
}

std::map<std::string, std::string> FakeWorker::metadata() const {
  absl::MutexLock lock(&mutex_);
  return metadata_;
}

int FakeWorker::messages_written() const {
  absl::MutexLock lock(&mutex_);
  return messages_written_;
}

void FakeWorker::WaitForRequests(int number) {
  const auto are_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return static_cast<int>(requests_.size()) >= number;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&are_there));
}

void FakeWorker::WaitForCancels(int number) {
  const auto are_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return cancels_ >= number;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&are_there));
}

void FakeWorker::WaitForModelInfos(int number) {
  const auto are_there = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return model_infos_ >= number;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&are_there));
}

grpc::ServerWriteReactor<v1::WorkerGenerateResponse>* FakeWorker::Generate(
    grpc::CallbackServerContext* context,
    const v1::WorkerGenerateRequest* request) {
  Call* call = nullptr;
  {
    absl::MutexLock lock(&mutex_);
    call = new Call(this, request->request_id(), script_(*request));
    calls_[request->request_id()] = call;
    requests_.push_back(*request);
    metadata_.clear();
    for (const auto& [name, value] : context->client_metadata()) {
      metadata_[{name.data(), name.size()}] = {value.data(), value.size()};
    }
  }
  call->Advance();
  return call;
}

grpc::ServerUnaryReactor* FakeWorker::Abort(
    grpc::CallbackServerContext* context, const v1::AbortRequest* request,
    v1::AbortResponse* response) {
  std::vector<Call*> waiting;
  {
    absl::MutexLock lock(&mutex_);
    aborts_.push_back(*request);
    for (const std::string& id : request->request_ids()) {
      const auto call = calls_.find(id);
      if (call == calls_.end()) {
        response->add_unknown(id);
      } else if (call->second->TakeAbort()) {
        waiting.push_back(call->second);
      }
    }
  }
  for (Call* call : waiting) call->Advance();
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

grpc::ServerUnaryReactor* FakeWorker::GetModelInfo(
    grpc::CallbackServerContext* context, const v1::GetModelInfoRequest*,
    v1::ModelInfo* response) {
  {
    absl::MutexLock lock(&mutex_);
    ++model_infos_;
  }
  *response = model_info_;
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(model_info_error_));
  return reactor;
}

grpc::ServerUnaryReactor* FakeWorker::GetServerInfo(
    grpc::CallbackServerContext* context, const v1::GetServerInfoRequest*,
    v1::ServerInfo* response) {
  *response = server_info_;
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

// A watch of the load: a report at once, and one at each Say.
class FakeWorker::LoadCall : public grpc::ServerWriteReactor<v1::Load> {
 public:
  explicit LoadCall(FakeWorker* worker) : worker_(worker) {
    absl::MutexLock lock(&worker_->mutex_);
    worker_->load_calls_.insert(this);
    SayLocked();
  }

  // With the worker's lock.
  void SayLocked() {
    if (is_writing_ || is_over_) return;
    is_writing_ = true;
    StartWrite(&load_);
  }

 private:
  void OnWriteDone(bool /*ok*/) override {
    absl::MutexLock lock(&worker_->mutex_);
    is_writing_ = false;
    if (is_over_) Finish(grpc::Status::CANCELLED);
  }
  void OnCancel() override {
    absl::MutexLock lock(&worker_->mutex_);
    is_over_ = true;
    worker_->load_calls_.erase(this);
    if (!is_writing_) Finish(grpc::Status::CANCELLED);
  }
  void OnDone() override { delete this; }

  FakeWorker* const worker_;
  const v1::Load load_;
  bool is_writing_ = false;
  bool is_over_ = false;
};

grpc::ServerWriteReactor<v1::Load>* FakeWorker::WatchLoad(
    grpc::CallbackServerContext* /*context*/,
    const v1::WatchLoadRequest* /*request*/) {
  bool says_load = false;
  {
    absl::MutexLock lock(&mutex_);
    says_load = says_load_;
  }
  if (says_load) return new LoadCall(this);
  return new RefusedStream<v1::Load>(
      absl::UnimplementedError("it does not say its load."));
}

void FakeWorker::SayLoad() {
  absl::MutexLock lock(&mutex_);
  says_load_ = true;
  for (LoadCall* call : load_calls_) call->SayLocked();
}

}  // namespace lockstep::testing
