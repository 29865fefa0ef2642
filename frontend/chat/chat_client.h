#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "common/security/grpc_credentials.h"
#include "proto/inference.grpc.pb.h"

namespace lockstep {

// One call of a ChatClient, which Cancel ends: before it starts, while it runs;
// afterwards nothing happens. Used for one call; Cancel from any thread.
class ChatCall {
 public:
  void Cancel();
  bool is_cancelled() const { return is_cancelled_; }

 private:
  friend class ChatClient;
  // Once gRPC has the call: it forgets what was cancelled before.
  void OnStarted();

  grpc::ClientContext context_;
  std::atomic<bool> is_cancelled_{false};
};

// How an answer ended, and what there was of it.
struct ChatAnswer {
  std::string text;  // what was said
  v1::FinishReason reason = v1::FINISH_REASON_UNSPECIFIED;
  v1::Usage usage;
  v1::Timing timing;
  absl::Status status;
};

// How a gateway is asked that does not answer everybody.
struct ChatAccess {
  std::string api_key;  // empty: none
  ClientTls tls;
};

// The gateway, as the chat needs it. Errors are sentences for the user. Any
// thread.
//
//   ChatCall call;
//   const ChatAnswer answer = client.Ask(&call, request, show);
//   if (call.is_cancelled()) …
class ChatClient {
 public:
  explicit ChatClient(const std::string& address,
                      const ChatAccess& access = {});

  absl::StatusOr<std::string> ModelName(ChatCall* call);

  // Blocks; `on_text` gets what is thought and said, as it comes.
  ChatAnswer Ask(ChatCall* call, const v1::GenerateRequest& request,
                 const std::function<void(absl::string_view)>& on_text);

 private:
  void Authorize(ChatCall* call) const;
  absl::Status Describe(const grpc::Status& status) const;

  const std::string address_;
  const std::string api_key_;
  const std::unique_ptr<v1::Inference::Stub> stub_;
};

}  // namespace lockstep
