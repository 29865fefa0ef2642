#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <utility>

#include "bench/gateway/streams.h"
#include "common/grpc_server.h"
#include "common/grpc_status.h"
#include "proto/inference.grpc.pb.h"
#include "proto/worker.grpc.pb.h"

namespace lockstep::bench {
namespace {

constexpr int kEchoedIds = 8;
constexpr char kEchoedText[] = "one two three four five six seven eight";

void FillSampling(const StreamsOptions& options, int stream,
                  v1::SamplingParams* sampling) {
  sampling->set_max_tokens(options.tokens);
  sampling->set_seed(stream);
}

// What differs between the two services.
struct ToWorker {
  using Service = v1::Worker;
  using Request = v1::WorkerGenerateRequest;
  using Response = v1::WorkerGenerateResponse;

  static void FillPrompt(Request* request) {
    for (int id = 0; id < kEchoedIds; ++id) request->add_prompt_token_ids(id);
  }
};
struct ToGateway {
  using Service = v1::Inference;
  using Request = v1::GenerateRequest;
  using Response = v1::GenerateResponse;

  static void FillPrompt(Request* request) { request->set_text(kEchoedText); }
};

// One stream: waits for its time, then reads to its end. Everything happens in
// OnEvent, for the one operation in flight.
template <typename To>
class Stream {
 public:
  Stream(const StreamsOptions& options, int index,
         typename To::Service::Stub* stub, grpc::CompletionQueue* queue)
      : index_(index), stub_(stub), queue_(queue) {
    To::FillPrompt(&request_);
    FillSampling(options, index, request_.mutable_sampling());
    alarm_.Set(queue_,
               std::chrono::system_clock::now() + index * options.stagger,
               this);
  }

  // False when it has ended, well or not.
  bool OnEvent(bool ok, const SentTimes& sent, StreamsRecorder* recorder) {
    if (reader_ == nullptr) {
      reader_ = stub_->PrepareAsyncGenerate(&context_, request_, queue_);
      reader_->StartCall(this);
      return true;
    }
    if (has_ended_) return false;
    if (!ok) {
      has_ended_ = true;
      reader_->Finish(&status_, this);
      return true;
    }
    if (response_.has_delta()) {
      recorder->OnTokens(index_, response_.delta().token_ids_size(), sent);
    }
    reader_->Read(&response_, this);
    return true;
  }

  absl::Status status() const { return FromGrpc(status_); }

 private:
  const int index_;
  typename To::Service::Stub* const stub_;
  grpc::CompletionQueue* const queue_;
  grpc::Alarm alarm_;
  grpc::ClientContext context_;
  typename To::Request request_;
  typename To::Response response_;
  std::unique_ptr<grpc::ClientAsyncReader<typename To::Response>> reader_;
  bool has_ended_ = false;
  grpc::Status status_;
};

template <typename To>
absl::StatusOr<StreamsResult> Run(const StreamsOptions& options,
                                  const SentTimes& sent) {
  const auto stub = To::Service::NewStub(grpc::CreateCustomChannel(
      options.target, grpc::InsecureChannelCredentials(), ChannelArguments()));
  grpc::CompletionQueue queue;
  std::vector<std::unique_ptr<Stream<To>>> streams;
  for (int i = 0; i < options.streams; ++i) {
    streams.push_back(
        std::make_unique<Stream<To>>(options, i, stub.get(), &queue));
  }
  StreamsRecorder recorder(options.streams);
  absl::Status status;
  void* tag = nullptr;
  bool ok = false;
  for (int open = options.streams; open > 0 && queue.Next(&tag, &ok);) {
    auto* const stream = static_cast<Stream<To>*>(tag);
    if (stream->OnEvent(ok, sent, &recorder)) continue;
    status.Update(stream->status());
    --open;
  }
  if (!status.ok()) return status;
  return recorder.Take();
}

}  // namespace

absl::StatusOr<StreamsResult> StreamFromWorker(const StreamsOptions& options,
                                               const SentTimes& sent) {
  return Run<ToWorker>(options, sent);
}

absl::StatusOr<StreamsResult> StreamOverGrpc(const StreamsOptions& options,
                                             const SentTimes& sent) {
  return Run<ToGateway>(options, sent);
}

}  // namespace lockstep::bench
