#include "bench/load/grpc_transport.h"

#include <algorithm>

#include "bench/gateway_calls.h"
#include "common/grpc_status.h"

namespace lockstep::bench {
namespace {

// The queue knows the system's clock alone.
std::chrono::system_clock::time_point ToSystemClock(Clock::time_point time) {
  if (time == Clock::time_point::max()) {
    return std::chrono::system_clock::time_point::max();
  }
  return std::chrono::system_clock::now() +
         std::chrono::duration_cast<std::chrono::system_clock::duration>(
             std::max(time - Clock::now(), Clock::duration::zero()));
}

}  // namespace

// One request, with one operation in flight; deletes itself after its end.
class GrpcTransport::Call {
 public:
  Call(v1::Inference::Stub& stub, const Prompt& prompt, Listener* listener,
       grpc::CompletionQueue* queue)
      : listener_(listener),
        reader_(stub.PrepareAsyncGenerate(
            &context_, GreedyRequest(prompt.ids, prompt.output_tokens),
            queue)) {
    reader_->StartCall(this);
  }

  void OnEvent(bool ok) {
    if (ends_) {
      listener_->OnEnd(FromGrpc(status_));
      delete this;
      return;
    }
    const auto& ids = response_.delta().token_ids();
    if (ok && !ids.empty())
      listener_->OnTokens({ids.data(), size_t(ids.size())});
    if (ok) {
      reader_->Read(&response_, this);
    } else {
      ends_ = true;
      reader_->Finish(&status_, this);
    }
  }

 private:
  Listener* const listener_;
  grpc::ClientContext context_;
  const std::unique_ptr<grpc::ClientAsyncReader<v1::GenerateResponse>> reader_;
  v1::GenerateResponse response_;  // of the last read; empty at first
  bool ends_ = false;
  grpc::Status status_;
};

GrpcTransport::GrpcTransport(const std::string& target, int connections) {
  for (int i = 0; i < connections; ++i) {
    stubs_.push_back(v1::Inference::NewStub(Connect(target)));
  }
}

GrpcTransport::~GrpcTransport() {
  queue_.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) continue;
}

void GrpcTransport::Start(const Prompt& prompt, Listener* listener) {
  new Call(*stubs_[begun_++ % stubs_.size()], prompt, listener, &queue_);
}

void GrpcTransport::HandleOne(Clock::time_point deadline) {
  void* tag = nullptr;
  bool ok = false;
  if (queue_.AsyncNext(&tag, &ok, ToSystemClock(deadline)) ==
      grpc::CompletionQueue::GOT_EVENT) {
    static_cast<Call*>(tag)->OnEvent(ok);
  }
}

}  // namespace lockstep::bench
