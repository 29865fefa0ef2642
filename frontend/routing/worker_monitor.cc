#include "frontend/routing/worker_monitor.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <glog/logging.h>
#include <pthread.h>

#include <chrono>
#include <utility>

#include "common/error_reason.h"
#include "common/health.pb.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

using grpc::health::v1::HealthCheckResponse;

constexpr std::chrono::seconds kInfoTimeout{10};
constexpr absl::Duration kRetryAfter = absl::Milliseconds(200);

// A model's logits may have rows beyond the tokenizer's ids, to a round number
// of them; published models have up to about a thousand.
constexpr uint32_t kMostPadding = 4096;

absl::Status Unreachable(const std::string& address) {
  return MakeError(
      ErrorReason::kWorkerUnreachable,
      absl::StrCat("the worker at ", address,
                   " cannot be reached; start it, or name another with "
                   "--workers."));
}

absl::Status NotReady(const std::string& address, v1::ServingState state) {
  const auto error = [&](ErrorReason reason, absl::string_view why) {
    return MakeError(reason, absl::StrCat("the worker at ", address,
                                          " is not ready: ", why, "."));
  };
  switch (state) {
    case v1::STARTING:
      return error(ErrorReason::kWorkerStarting, "it is starting");
    case v1::DRAINING:
      return error(ErrorReason::kWorkerDraining, "it is draining");
    case v1::STOPPING:
      return error(ErrorReason::kWorkerDraining, "it is shutting down");
    case v1::FAILED:
      return error(ErrorReason::kGroupFailed, "a rank failed");
    default:
      return error(ErrorReason::kUnavailable, "it is starting or leaving");
  }
}

absl::Status SaysNothing(const std::string& address, const absl::Status& why) {
  if (absl::IsUnavailable(why)) return Unreachable(address);
  return absl::UnavailableError(
      absl::StrCat("the worker at ", address,
                   " does not say what it serves: ", why.message()));
}

}  // namespace

WorkerMonitor::WorkerMonitor(WorkerClient* client,
                             const TokenizerIdentity& tokenizer)
    : client_(client),
      tokenizer_(tokenizer),
      model_(MakeError(ErrorReason::kWorkerUnreachable,
                       absl::StrCat("the worker at ", client->address(),
                                    " has not been reached yet."))) {}

void WorkerMonitor::Start(std::function<void()> on_change) {
  on_change_ = std::move(on_change);
  thread_ = std::thread([this] { Follow(); });
  pthread_setname_np(thread_.native_handle(), "worker-monitor");
}

void WorkerMonitor::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    if (active_ != nullptr) active_->TryCancel();
  }
  if (thread_.joinable()) thread_.join();
}

absl::StatusOr<ServedModel> WorkerMonitor::Model() const {
  absl::MutexLock lock(&mutex_);
  return model_;
}

void WorkerMonitor::Follow() {
  while (true) {
    FollowOnce();
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(
            absl::Condition(this, &WorkerMonitor::IsStopping), kRetryAfter)) {
      return;
    }
  }
}

void WorkerMonitor::FollowOnce() {
  grpc::ClientContext context;
  if (!SetActive(&context)) return;
  const auto stream = client_->WatchHealth(&context);
  HealthCheckResponse health;
  absl::Status broken = Unreachable(client_->address());
  while (stream->Read(&health)) {
    if (health.status() != HealthCheckResponse::SERVING) {
      Set(WhyNotReady());
      if (!SetActive(&context)) context.TryCancel();
      continue;
    }
    const auto model = FetchModel();
    const bool is_usable = model.ok();
    if (!is_usable) broken = model.status();
    Set(model);
    // Try anew from the start, until the worker has a model that fits.
    if (!is_usable || !SetActive(&context)) context.TryCancel();
  }
  SetActive(nullptr);
  stream->Finish();
  Set(broken);
}

absl::StatusOr<v1::ServerInfo> WorkerMonitor::FetchServerInfo() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kInfoTimeout);
  if (!SetActive(&context)) return Unreachable(client_->address());
  auto server = client_->GetServerInfo(&context);
  SetActive(nullptr);
  return server;
}

absl::Status WorkerMonitor::WhyNotReady() {
  const auto server = FetchServerInfo();
  if (!server.ok()) return SaysNothing(client_->address(), server.status());
  return NotReady(client_->address(), server->state());
}

absl::Status WorkerMonitor::CheckTokenizer(const v1::ModelInfo& info) const {
  const auto refuse = [&](const auto&... why) {
    return absl::UnavailableError(absl::StrCat(
        "the worker at ", client_->address(), " serves ", info.name(), " ",
        why..., "; start the gateway with the --model of the worker."));
  };
  const uint32_t rows = info.vocabulary_size();
  if (rows < tokenizer_.vocabulary_size ||
      rows - tokenizer_.vocabulary_size > kMostPadding) {
    return refuse("with a vocabulary of ", rows, " ids, but the tokenizer has ",
                  tokenizer_.vocabulary_size);
  }
  if (!info.tokens_digest().empty() && !tokenizer_.tokens_digest.empty() &&
      info.tokens_digest() != tokenizer_.tokens_digest) {
    return refuse("whose token ids stand for other texts (digest ",
                  absl::BytesToHexString(info.tokens_digest()),
                  ") than the tokenizer's (",
                  absl::BytesToHexString(tokenizer_.tokens_digest), ")");
  }
  return absl::OkStatus();
}

absl::StatusOr<ServedModel> WorkerMonitor::FetchModel() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kInfoTimeout);
  if (!SetActive(&context)) return Unreachable(client_->address());
  auto info = client_->GetModelInfo(&context);
  SetActive(nullptr);
  if (!info.ok()) return SaysNothing(client_->address(), info.status());
  const auto server = FetchServerInfo();
  if (!server.ok()) return SaysNothing(client_->address(), server.status());
  LOCKSTEP_RETURN_IF_ERROR(CheckTokenizer(*info));
  ServedModel model = {
      info->name(),
      info->max_context_tokens(),
      info->vocabulary_size(),
      info->fingerprint(),
      server->version(),
      int64_t{server->num_pages()} * server->page_size_tokens()};
  if (info->has_embedding()) model.embedding = info->embedding();
  model.no_embedding = info->no_embedding();
  model.no_generation = info->no_generation();
  model.default_sampling = info->default_sampling();
  return model;
}

void WorkerMonitor::Set(const absl::StatusOr<ServedModel>& model) {
  bool is_news = false;
  bool turned = false;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    turned = model.ok() != model_.ok();
    is_news = turned || model.status() != model_.status();
    model_ = model;
  }
  LOG_IF(INFO, is_news && model.ok())
      << "the worker at " << client_->address() << " serves " << model->name;
  LOG_IF(WARNING, is_news && !model.ok()) << model.status().message();
  if (turned) on_change_();
}

bool WorkerMonitor::SetActive(grpc::ClientContext* context) {
  absl::MutexLock lock(&mutex_);
  active_ = stopping_ ? nullptr : context;
  return !stopping_;
}

}  // namespace lockstep
