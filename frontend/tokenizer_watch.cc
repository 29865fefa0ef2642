#include "frontend/tokenizer_watch.h"

#include <absl/strings/str_cat.h>
#include <absl/time/time.h>
#include <glog/logging.h>
#include <pthread.h>

#include <chrono>
#include <utility>

#include "common/grpc_server.h"
#include "common/health.grpc.pb.h"
#include "proto/tokenizer.grpc.pb.h"

namespace lockstep {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr absl::Duration kRetryAfter = absl::Milliseconds(200);
constexpr int kMaxReconnectMs = 1000;
constexpr std::chrono::seconds kInfoTimeout{10};

grpc::ChannelArguments WatchChannelArguments() {
  grpc::ChannelArguments arguments = ChannelArguments();
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kMaxReconnectMs);
  return arguments;
}

}  // namespace

TokenizerWatch::TokenizerWatch(const std::string& address,
                               const Digest& vocabulary, ClientTls tls)
    : address_(address),
      vocabulary_digest_(vocabulary.begin(), vocabulary.end()),
      channel_(address, WatchChannelArguments(), std::move(tls)) {}

void TokenizerWatch::Start(std::function<void()> on_change) {
  on_change_ = std::move(on_change);
  thread_ = std::thread([this] { Follow(); });
  pthread_setname_np(thread_.native_handle(), "tokenizer-watch");
}

void TokenizerWatch::Stop() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    if (active_ != nullptr) active_->TryCancel();
  }
  if (thread_.joinable()) thread_.join();
}

absl::Status TokenizerWatch::status() const {
  absl::MutexLock lock(&mutex_);
  return status_;
}

void TokenizerWatch::Follow() {
  while (true) {
    FollowOnce();
    absl::MutexLock lock(&mutex_);
    if (mutex_.AwaitWithTimeout(
            absl::Condition(this, &TokenizerWatch::IsStopping), kRetryAfter)) {
      return;
    }
  }
}

void TokenizerWatch::FollowOnce() {
  grpc::ClientContext context;
  if (!SetActive(&context)) return;
  HealthCheckRequest request;
  request.set_service(v1::Tokenizer::service_full_name());
  const auto stub = grpc::health::v1::Health::NewStub(channel_.Get());
  const auto stream = stub->Watch(&context, request);
  HealthCheckResponse health;
  absl::Status broken = absl::UnavailableError(
      absl::StrCat("the tokenizer service at ", address_,
                   " cannot be reached; start it, or name another with "
                   "--tokenizer_address."));
  while (stream->Read(&health)) {
    if (health.status() != HealthCheckResponse::SERVING) {
      Set(absl::UnavailableError(
          absl::StrCat("the tokenizer service at ", address_,
                       " is not ready: it is starting or leaving.")));
      continue;
    }
    const absl::Status checked = CheckVocabulary();
    Set(checked);
    if (!checked.ok()) broken = checked;
    // Try anew from the start, until it is the one that it was.
    if (!checked.ok() || !SetActive(&context)) context.TryCancel();
  }
  SetActive(nullptr);
  stream->Finish();
  Set(broken);
}

absl::Status TokenizerWatch::CheckVocabulary() {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kInfoTimeout);
  if (!SetActive(&context)) return absl::OkStatus();
  v1::TokenizerInfo info;
  const auto stub = v1::Tokenizer::NewStub(channel_.Get());
  const grpc::Status status =
      stub->GetTokenizerInfo(&context, v1::GetTokenizerInfoRequest(), &info);
  SetActive(nullptr);
  if (!status.ok() && status.error_code() != grpc::UNIMPLEMENTED) {
    return absl::UnavailableError(
        absl::StrCat("the tokenizer service at ", address_,
                     " does not say what it has: ", status.error_message()));
  }
  // One of another version may not say it here; its answers to Encode do.
  if (info.vocabulary_digest().empty() ||
      info.vocabulary_digest() == vocabulary_digest_) {
    return absl::OkStatus();
  }
  return absl::UnavailableError(absl::StrCat(
      "the tokenizer service at ", address_,
      " has another vocabulary than it had; start the gateway again."));
}

void TokenizerWatch::Set(const absl::Status& status) {
  bool is_news = false;
  bool turned = false;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    is_news = status != status_;
    turned = status.ok() != status_.ok();
    status_ = status;
  }
  LOG_IF(WARNING, is_news && !status.ok()) << status.message();
  LOG_IF(INFO, turned && status.ok())
      << "the tokenizer service at " << address_ << " is back";
  if (turned) on_change_();
}

bool TokenizerWatch::SetActive(grpc::ClientContext* context) {
  absl::MutexLock lock(&mutex_);
  active_ = stopping_ ? nullptr : context;
  return !stopping_;
}

}  // namespace lockstep
