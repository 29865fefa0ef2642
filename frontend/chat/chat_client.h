#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>

#include "proto/inference.grpc.pb.h"

namespace lockstep {

// How an answer ended, and what there was of it.
struct ChatAnswer {
  std::string text;
  v1::FinishReason reason = v1::FINISH_REASON_UNSPECIFIED;
  v1::Usage usage;
  v1::Timing timing;
  absl::Status status;  // CANCELLED after Cancel
};

// The gateway, as the chat needs it. Errors are sentences for the user.
class ChatClient {
 public:
  explicit ChatClient(const std::string& address);

  absl::StatusOr<std::string> ModelName();

  // Blocks; `on_text` gets the answer's text as it comes. One call at a time.
  ChatAnswer Ask(const v1::GenerateRequest& request,
                 const std::function<void(absl::string_view)>& on_text);

  // Ends the answer in progress, if there is one. Any thread.
  void Cancel();

 private:
  absl::Status Describe(const grpc::Status& status) const;

  const std::string address_;
  const std::unique_ptr<v1::Inference::Stub> stub_;
  absl::Mutex mutex_;
  grpc::ClientContext* active_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace lockstep
