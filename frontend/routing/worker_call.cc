#include "frontend/routing/worker_call.h"

#include <absl/strings/str_cat.h>

#include <string>
#include <utility>

#include "common/error_reason.h"
#include "common/grpc_status.h"

namespace lockstep {

WorkerCall::WorkerCall(std::shared_ptr<v1::Worker::Stub> stub,
                       const std::string& address,
                       v1::WorkerGenerateRequest request,
                       const CallMetadata& metadata,
                       std::chrono::system_clock::time_point deadline,
                       Listener* listener)
    : stub_(std::move(stub)),
      address_(address),
      request_(std::move(request)),
      listener_(listener) {
  context_.set_deadline(deadline);
  for (const auto& [name, value] : metadata) context_.AddMetadata(name, value);
}

void WorkerCall::Start() {
  stub_->async()->Generate(&context_, &request_, this);
  // Reads are started from outside of reactions, so the call must not end
  // between two of them; OnReadDone lets go.
  AddHold();
  StartRead(&message_);
  StartCall();
}

void WorkerCall::Next() { StartRead(&message_); }

void WorkerCall::OnReadDone(bool ok) {
  if (ok) {
    listener_->OnMessage(message_);
  } else {
    RemoveHold();
  }
}

void WorkerCall::OnDone(const grpc::Status& status) {
  listener_->OnEnd(DescribeWorkerStatus(status, address_));
}

absl::Status DescribeWorkerStatus(const grpc::Status& status,
                                  const std::string& address) {
  const absl::Status told = FromGrpc(status);
  switch (status.error_code()) {
    case grpc::StatusCode::UNAVAILABLE: {
      const std::string message =
          absl::StrCat("the worker at ", address,
                       " is unavailable: ", status.error_message());
      // Without a reason it is gRPC that says so: the connection.
      return ErrorReasonOf(told).empty()
                 ? MakeError(ErrorReason::kWorkerUnreachable, message)
                 : WithMessage(told, message);
    }
    case grpc::StatusCode::CANCELLED:
      // Not by us, or nobody would ask: the worker went away.
      return MakeError(ErrorReason::kWorkerUnreachable,
                       absl::StrCat("the worker at ", address,
                                    " gave the request up; try again."));
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return WithMessage(
          told,
          "the deadline of the call passed before the answer was complete.");
    default:
      return told;
  }
}

}  // namespace lockstep
