#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/grpc_server.h"
#include "proto/worker.grpc.pb.h"

namespace lockstep::testing {

// How a FakeWorker answers one Generate call: `messages`, and then what `then`
// says.
struct FakeAnswer {
  enum class Then {
    kFinish,       // with `status`
    kAwaitAbort,   // of the request; then `after_abort` and `status`
    kAwaitCancel,  // for ever, unless the client goes
  };

  std::vector<v1::WorkerGenerateResponse> messages;
  Then then = Then::kFinish;
  std::vector<v1::WorkerGenerateResponse> after_abort;
  absl::Status status;
};

v1::WorkerGenerateResponse AcceptedMessage(
    const v1::WorkerGenerateRequest& request);
// A token for each byte, as FakeTokenizer has them.
v1::WorkerGenerateResponse DeltaMessage(uint32_t index,
                                        const std::string& bytes);
v1::WorkerGenerateResponse FinishMessage(uint32_t index,
                                         v1::FinishReason reason);
v1::WorkerGenerateResponse SummaryMessage();

// A whole answer with one choice: a delta for each byte, LENGTH.
FakeAnswer Say(const v1::WorkerGenerateRequest& request,
               const std::string& text);

// A whole answer to a request for an embedding: the number of its tokens, and
// the last of them.
FakeAnswer Embed(const v1::WorkerGenerateRequest& request);

// A leader in this process, on a port of its own, that answers as it is told.
//
//   FakeWorker worker;
//   worker.set_script([](const auto& request) { return Say(request, "hi"); });
//   worker.Start();
//
// Start, Stop and SetServing are one thread's; the rest is any thread's.
class FakeWorker : private v1::Worker::CallbackService {
 public:
  using Script = std::function<FakeAnswer(const v1::WorkerGenerateRequest&)>;

  FakeWorker();
  ~FakeWorker() override;

  void set_script(Script script);
  // Before Start; named "fake", with 100 tokens of context, FakeTokenizer's
  // vocabulary and embeddings of 2 values, unless changed.
  v1::ModelInfo& model_info() { return model_info_; }

  // Before Start; of version "fake", with room for 1600 tokens, unless changed.
  v1::ServerInfo& server_info() { return server_info_; }

  // Before Start; what GetModelInfo answers instead.
  void set_model_info_error(absl::Status error) {
    model_info_error_ = std::move(error);
  }

  // Serves; again on the same port after a Stop. SERVING.
  void Start();
  // Breaks every stream, and is gone.
  void Stop();
  void SetServing(bool serving) { server_->SetServing(serving); }

  // Fixed by the first Start.
  std::string address() const;

  std::vector<v1::WorkerGenerateRequest> requests() const;
  std::vector<v1::AbortRequest> aborts() const;
  // Of the last Generate call.
  std::map<std::string, std::string> metadata() const;
  int messages_written() const;

  // To those who watch its load, and will: without it that is UNIMPLEMENTED.
  void SayLoad();
  // Blocks until so many Generate calls have come, or were cancelled, or the
  // model was asked for so often.
  void WaitForRequests(int number);
  void WaitForCancels(int number);
  void WaitForModelInfos(int number);

 private:
  class Call;
  class LoadCall;

  grpc::ServerWriteReactor<v1::WorkerGenerateResponse>* Generate(
      grpc::CallbackServerContext* context,
      const v1::WorkerGenerateRequest* request) override;
  grpc::ServerUnaryReactor* Abort(grpc::CallbackServerContext* context,
                                  const v1::AbortRequest* request,
                                  v1::AbortResponse* response) override;
  grpc::ServerUnaryReactor* GetModelInfo(grpc::CallbackServerContext* context,
                                         const v1::GetModelInfoRequest* request,
                                         v1::ModelInfo* response) override;
  grpc::ServerUnaryReactor* GetServerInfo(
      grpc::CallbackServerContext* context,
      const v1::GetServerInfoRequest* request,
      v1::ServerInfo* response) override;

  grpc::ServerWriteReactor<v1::Load>* WatchLoad(
      grpc::CallbackServerContext* context,
      const v1::WatchLoadRequest* request) override;

  v1::ModelInfo model_info_;
  v1::ServerInfo server_info_;
  absl::Status model_info_error_;
  int port_ = 0;
  std::unique_ptr<GrpcServer> server_;

  mutable absl::Mutex mutex_;
  Script script_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Call*> calls_ ABSL_GUARDED_BY(mutex_);  // by request id
  std::vector<v1::WorkerGenerateRequest> requests_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::AbortRequest> aborts_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::string> metadata_ ABSL_GUARDED_BY(mutex_);
  bool says_load_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<LoadCall*> load_calls_ ABSL_GUARDED_BY(mutex_);
  int messages_written_ ABSL_GUARDED_BY(mutex_) = 0;
  int cancels_ ABSL_GUARDED_BY(mutex_) = 0;
  int model_infos_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep::testing
