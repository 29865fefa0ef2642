#include "common/health/health_server.h"

#include <absl/strings/ascii.h>
#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <glog/logging.h>
#include <grpcpp/alarm.h>
#include <grpcpp/ext/health_check_service_server_builder_option.h>
#include <pthread.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "common/error_reason.h"
#include "common/grpc_server.h"
#include "common/grpc_status.h"

namespace lockstep {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using Service = grpc::health::v1::Health::AsyncService;

// What comes out of the queue.
class Tag {
 public:
  virtual ~Tag() = default;
  virtual void Run(bool ok) = 0;
};

constexpr size_t kMostNameBytes = 100;  // of a service, in a message

// Metadata are printable ASCII.
std::string Printable(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return !absl::ascii_isprint(c); },
      '?');
  return text;
}

}  // namespace

// The calls that wait to come and those that run. Each owns itself.
class HealthServer::Calls {
 public:
  Calls(Service* service, grpc::ServerCompletionQueue* queue,
        const HealthBoard* board, std::vector<std::string> service_names)
      : service_(service),
        queue_(queue),
        board_(board),
        ready_names_(service_names.begin(), service_names.end()) {
    ready_names_.insert({"", "readiness"});
  }

  // Until Stop, and the end of all calls.
  void Run();

  // Any thread; once, when the server has been shut down.
  void Stop() { alarm_.Set(queue_, std::chrono::system_clock::now(), &stop_); }

 private:
  class Check;
  class Watch;

  // After it nothing may be begun on the queue.
  class StopTag final : public Tag {
   public:
    explicit StopTag(Calls* calls) : calls_(calls) {}
    void Run(bool /*ok*/) override {
      calls_->is_stopping_ = true;
      calls_->queue_->Shutdown();
    }

   private:
    Calls* const calls_;
  };

  // Nothing for a service that is not there.
  std::optional<HealthCheckResponse::ServingStatus> StatusOf(
      const std::string& service, const HealthReport& report) const {
    const bool is_liveness = service == "liveness";
    if (!is_liveness && !ready_names_.contains(service)) return std::nullopt;
    return (is_liveness ? report.live : report.ready)
               ? HealthCheckResponse::SERVING
               : HealthCheckResponse::NOT_SERVING;
  }

  Service* const service_;
  grpc::ServerCompletionQueue* const queue_;
  const HealthBoard* const board_;
  std::set<std::string> ready_names_;
  std::set<Watch*> watches_;
  bool is_stopping_ = false;
  StopTag stop_{this};
  grpc::Alarm alarm_;
};

class HealthServer::Calls::Check final : public Tag {
 public:
  explicit Check(Calls* calls) : calls_(calls) {
    calls_->service_->RequestCheck(&context_, &request_, &responder_,
                                   calls_->queue_, calls_->queue_, this);
  }

  void Run(bool ok) override {
    if (!ok || calls_->is_stopping_ || std::exchange(has_come_, true)) {
      delete this;
      return;
    }
    new Check(calls_);
    Answer();
  }

 private:
  void Answer() {
    const HealthReport report = calls_->board_->report();
    context_.AddTrailingMetadata("lockstep-phase",
                                 std::string(PhaseName(report.phase)));
    context_.AddTrailingMetadata("lockstep-detail", Printable(report.detail));
    const auto status = calls_->StatusOf(request_.service(), report);
    if (!status.has_value()) {
      const std::string name = request_.service().substr(0, kMostNameBytes);
      responder_.FinishWithError(
          ToGrpc(absl::NotFoundError(
              absl::StrCat("there is no service \"", absl::CHexEscape(name),
                           "\" here; try liveness or readiness."))),
          this);
      return;
    }
    HealthCheckResponse response;
    response.set_status(*status);
    responder_.Finish(response, grpc::Status::OK, this);
  }

  Calls* const calls_;
  bool has_come_ = false;
  grpc::ServerContext context_;
  HealthCheckRequest request_;
  grpc::ServerAsyncResponseWriter<HealthCheckResponse> responder_{&context_};
};

// One write at a time, so that a client that does not read costs one message.
class HealthServer::Calls::Watch {
 public:
  explicit Watch(Calls* calls) : calls_(calls) {
    context_.AsyncNotifyWhenDone(&over_);
    calls_->service_->RequestWatch(&context_, &request_, &writer_,
                                   calls_->queue_, calls_->queue_, &come_);
  }

  void SendIfChanged() {
    if (is_writing_ || is_finishing_) return;
    const auto status =
        calls_->StatusOf(request_.service(), calls_->board_->report())
            .value_or(HealthCheckResponse::SERVICE_UNKNOWN);
    if (std::exchange(sent_, status) == status) return;
    response_.set_status(status);
    is_writing_ = true;
    writer_.Write(response_, &written_);
  }

 private:
  class Handler final : public Tag {
   public:
    Handler(Watch* watch, void (Watch::*what)(bool))
        : watch_(watch), what_(what) {}
    void Run(bool ok) override { (watch_->*what_)(ok); }

   private:
    Watch* const watch_;
    void (Watch::*const what_)(bool);
  };

  void OnCome(bool ok) {
    if (!ok) {  // the server leaves; of such a call nothing else comes
      delete this;
      return;
    }
    if (calls_->is_stopping_) return;  // it is over, too
    new Watch(calls_);
    if (calls_->watches_.size() >= kMostWatches) return Refuse();
    calls_->watches_.insert(this);
    SendIfChanged();
  }

  void Refuse() {
    is_finishing_ = true;
    writer_.Finish(
        ToGrpc(MakeError(
            ErrorReason::kOverloaded,
            absl::StrCat(kMostWatches, " calls watch the health already."),
            {.retry_delay = absl::Seconds(1)})),
        &finished_);
  }

  // A call whose write failed is over, or about to be.
  void OnWritten(bool ok) {
    is_writing_ = false;
    if (is_over_) {
      delete this;
    } else if (ok && !calls_->is_stopping_) {
      SendIfChanged();
    }
  }

  void OnFinished(bool /*ok*/) {
    is_finishing_ = false;
    if (is_over_) delete this;
  }

  void OnOver(bool /*ok*/) {
    is_over_ = true;
    calls_->watches_.erase(this);
    if (!is_writing_ && !is_finishing_) delete this;
  }

  Calls* const calls_;
  Handler come_{this, &Watch::OnCome};
  Handler written_{this, &Watch::OnWritten};
  Handler finished_{this, &Watch::OnFinished};
  Handler over_{this, &Watch::OnOver};
  bool is_writing_ = false;
  bool is_finishing_ = false;
  bool is_over_ = false;  // for gRPC, be it that the client is gone
  HealthCheckResponse::ServingStatus sent_ = HealthCheckResponse::UNKNOWN;

  grpc::ServerContext context_;
  HealthCheckRequest request_;
  HealthCheckResponse response_;  // being written
  grpc::ServerAsyncWriter<HealthCheckResponse> writer_{&context_};
};

void HealthServer::Calls::Run() {
  new Check(this);
  new Watch(this);
  while (true) {
    const auto deadline = watches_.empty()
                              ? std::chrono::system_clock::time_point::max()
                              : std::chrono::system_clock::now() + kLookEvery;
    void* tag = nullptr;
    bool ok = false;
    const auto next = queue_->AsyncNext(&tag, &ok, deadline);
    if (next == grpc::CompletionQueue::SHUTDOWN) return;
    if (next == grpc::CompletionQueue::GOT_EVENT) {
      static_cast<Tag*>(tag)->Run(ok);
    }
    if (is_stopping_) continue;
    for (Watch* watch : watches_) watch->SendIfChanged();
  }
}

absl::StatusOr<std::unique_ptr<HealthServer>> HealthServer::Start(
    const std::string& address, const std::string& flag,
    const HealthBoard* board, std::vector<std::string> service_names) {
  std::unique_ptr<HealthServer> result(new HealthServer);
  grpc::ServerBuilder builder;
  builder.AddListeningPort(address, grpc::InsecureServerCredentials(),
                           &result->port_);
  SetServerLimits(&builder);
  // gRPC's own would take our service's name.
  builder.SetOption(
      std::make_unique<grpc::HealthCheckServiceServerBuilderOption>(nullptr));
  builder.RegisterService(&result->service_);
  result->queue_ = builder.AddCompletionQueue();
  result->server_ = builder.BuildAndStart();
  if (result->server_ == nullptr || result->port_ == 0) {
    result->queue_->Shutdown();
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", address,
        ": the address is in use or not of this host; choose another with --",
        flag, "."));
  }
  result->calls_ = std::make_unique<Calls>(
      &result->service_, result->queue_.get(), board, std::move(service_names));
  result->thread_ =
      std::thread([calls = result->calls_.get()] { calls->Run(); });
  pthread_setname_np(result->thread_.native_handle(), "health");
  return result;
}

// The server cancels all calls; the thread takes what becomes of them.
HealthServer::~HealthServer() {
  if (!thread_.joinable()) return;
  server_->Shutdown(std::chrono::system_clock::now());
  calls_->Stop();
  thread_.join();
}

absl::StatusOr<std::unique_ptr<HealthServer>> StartHealthServer(
    const std::string& address, const HealthBoard* board,
    std::vector<std::string> service_names) {
  if (address.empty()) return nullptr;
  auto server = HealthServer::Start(address, "health_listen", board,
                                    std::move(service_names));
  if (server.ok()) LOG(INFO) << "health on port " << (*server)->port();
  return server;
}

}  // namespace lockstep
