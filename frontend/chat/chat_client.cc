#include "frontend/chat/chat_client.h"

#include <absl/strings/str_cat.h>
#include <absl/synchronization/notification.h>

#include <chrono>
#include <utility>

#include "common/grpc_server.h"
#include "common/grpc_status.h"

namespace lockstep {
namespace {

constexpr std::chrono::seconds kListTimeout{10};

// What is said follows what is thought, after an empty line.
void Show(const v1::TextDelta& delta, bool* thinks,
          const std::function<void(absl::string_view)>& on_text) {
  if (!delta.reasoning().empty()) {
    on_text(delta.reasoning());
    *thinks = true;
  }
  if (delta.text().empty()) return;
  if (std::exchange(*thinks, false)) on_text("\n\n");
  on_text(delta.text());
}

}  // namespace

void ChatCall::Cancel() {
  is_cancelled_ = true;
  context_.TryCancel();
}

void ChatCall::OnStarted() {
  if (is_cancelled_) context_.TryCancel();
}

ChatClient::ChatClient(const std::string& address, const ChatAccess& access)
    : address_(address),
      api_key_(access.api_key),
      stub_(v1::Inference::NewStub(
          SecureChannel(address, ChannelArguments(), access.tls).Get())) {}

void ChatClient::Authorize(ChatCall* call) const {
  if (api_key_.empty()) return;
  call->context_.AddMetadata("authorization", "Bearer " + api_key_);
}

absl::StatusOr<std::string> ChatClient::ModelName(ChatCall* call) {
  Authorize(call);
  call->context_.set_deadline(std::chrono::system_clock::now() + kListTimeout);
  const v1::ListModelsRequest request;
  v1::ListModelsResponse response;
  grpc::Status status;
  absl::Notification done;
  stub_->async()->ListModels(&call->context_, &request, &response,
                             [&](grpc::Status result) {
                               status = std::move(result);
                               done.Notify();
                             });
  call->OnStarted();
  done.WaitForNotification();
  if (!status.ok()) return Describe(status);
  if (response.models().empty()) {
    return absl::UnavailableError(
        absl::StrCat("The gateway at ", address_, " serves no model."));
  }
  return response.models(0).name();
}

ChatAnswer ChatClient::Ask(
    ChatCall* call, const v1::GenerateRequest& request,
    const std::function<void(absl::string_view)>& on_text) {
  ChatAnswer answer;
  Authorize(call);
  const auto stream = stub_->Generate(&call->context_, request);
  call->OnStarted();
  v1::GenerateResponse response;
  bool thinks = false;
  while (stream->Read(&response)) {
    if (response.has_delta()) {
      Show(response.delta(), &thinks, on_text);
      answer.text += response.delta().text();
    } else if (response.has_finish()) {
      answer.reason = response.finish().reason();
    } else if (response.has_summary()) {
      answer.usage = response.summary().usage();
      answer.timing = response.summary().timing();
    }
  }
  answer.status = Describe(stream->Finish());
  return answer;
}

absl::Status ChatClient::Describe(const grpc::Status& status) const {
  const bool is_connected =
      status.error_message().find("failed to connect") == std::string::npos;
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE && !is_connected) {
    return absl::UnavailableError(absl::StrCat(
        "There is no gateway at ", address_,
        "; start one with ./lockstep up, or name another with --server."));
  }
  return FromGrpc(status);
}

}  // namespace lockstep
