#include "bench/serving/serving_clients.h"

#include <absl/strings/str_cat.h>
#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
#include <optional>
#include <random>

#include "bench/gateway_calls.h"
#include "common/grpc_status.h"
#include "common/status_macros.h"
#include "proto/inference.grpc.pb.h"

namespace lockstep::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kConnectTimeout{30};

absl::StatusOr<uint32_t> VocabularySize(const std::string& target) {
  const auto stub = v1::Inference::NewStub(Connect(target));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kConnectTimeout);
  context.set_wait_for_ready(true);
  v1::ListModelsResponse response;
  LOCKSTEP_RETURN_IF_ERROR(FromGrpc(stub->ListModels(&context, {}, &response)));
  if (response.models().empty()) {
    return absl::UnavailableError(
        absl::StrCat("the gateway at ", target, " serves no model."));
  }
  return response.models(0).vocabulary_size();
}

// One client: waits for its time, then request after request. Everything
// happens in OnEvent, for the one operation in flight.
class Client {
 public:
  Client(const ServingOptions& options, int index, uint32_t vocabulary_size,
         grpc::CompletionQueue* queue, ServingResult* result)
      : traffic_(options.traffic),
        queue_(queue),
        result_(result),
        stub_(v1::Inference::NewStub(Connect(options.target))),
        random_(index + 1),
        ids_(0, vocabulary_size - 1) {
    alarm_.Set(queue_,
               std::chrono::system_clock::now() + index * traffic_.stagger,
               this);
  }

  // False when this client is done, well or not.
  bool OnEvent(bool ok) {
    switch (state_) {
      case State::kWaits:
        Ask();
        return true;
      case State::kStarts:
      case State::kReads:
        return OnRead(ok);
      case State::kEnds:
        return OnEnd();
    }
    return false;
  }

  const absl::Status& status() const { return status_; }

 private:
  enum class State { kWaits, kStarts, kReads, kEnds };

  void Ask() {
    std::vector<uint32_t> prompt(traffic_.prompt_tokens);
    for (uint32_t& id : prompt) id = ids_(random_);
    const v1::GenerateRequest request =
        GreedyRequest(prompt, traffic_.output_tokens);
    ++rounds_begun_;
    last_ = Clock::now();
    has_token_ = false;
    reader_.reset();  // lives in the call, which the context holds
    context_.emplace();
    reader_ = stub_->PrepareAsyncGenerate(&*context_, request, queue_);
    state_ = State::kStarts;
    reader_->StartCall(this);
  }

  bool OnRead(bool ok) {
    if (ok && state_ == State::kReads) Record();
    state_ = ok ? State::kReads : State::kEnds;
    if (ok) {
      reader_->Read(&response_, this);
    } else {
      reader_->Finish(&grpc_status_, this);
    }
    return true;
  }

  void Record() {
    const int tokens = response_.delta().token_ids_size();
    if (!response_.has_delta() || tokens == 0) return;
    const Clock::time_point now = Clock::now();
    auto& gaps = has_token_ ? result_->inter_token_s : result_->first_token_s;
    gaps.push_back(std::chrono::duration<double>(now - last_).count());
    result_->tokens += tokens;
    last_ = now;
    has_token_ = true;
  }

  bool OnEnd() {
    status_ = FromGrpc(grpc_status_);
    if (!status_.ok() || rounds_begun_ == traffic_.rounds) return false;
    Ask();
    return true;
  }

  const Traffic traffic_;
  grpc::CompletionQueue* const queue_;
  ServingResult* const result_;
  const std::unique_ptr<v1::Inference::Stub> stub_;
  std::mt19937 random_;
  std::uniform_int_distribution<uint32_t> ids_;

  State state_ = State::kWaits;
  grpc::Alarm alarm_;
  std::optional<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::GenerateResponse>> reader_;
  v1::GenerateResponse response_;
  grpc::Status grpc_status_;
  absl::Status status_;
  int rounds_begun_ = 0;
  Clock::time_point last_;  // token of the request, or its start
  bool has_token_ = false;
};

}  // namespace

absl::StatusOr<ServingResult> RunServingClients(const ServingOptions& options) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint32_t vocabulary_size,
                            VocabularySize(options.target));
  ServingResult result;
  grpc::CompletionQueue queue;
  const Clock::time_point begin = Clock::now();
  std::vector<std::unique_ptr<Client>> clients;
  for (int i = 0; i < options.traffic.clients; ++i) {
    clients.push_back(
        std::make_unique<Client>(options, i, vocabulary_size, &queue, &result));
  }
  int active = options.traffic.clients;
  void* tag = nullptr;
  bool ok = false;
  while (active > 0 && queue.Next(&tag, &ok)) {
    if (!static_cast<Client*>(tag)->OnEvent(ok)) --active;
  }
  result.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  for (const auto& client : clients) {
    LOCKSTEP_RETURN_IF_ERROR(client->status());
  }
  return result;
}

}  // namespace lockstep::bench
