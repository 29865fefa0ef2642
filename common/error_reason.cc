#include "common/error_reason.h"

#include <absl/strings/cord.h>
#include <google/protobuf/util/time_util.h>

#include "common/rpc_status.pb.h"

namespace lockstep {
namespace {

using absl::StatusCode;
using google::protobuf::util::TimeUtil;

constexpr char kDomain[] = "lockstep";
constexpr char kErrorInfoUrl[] = "type.googleapis.com/google.rpc.ErrorInfo";
constexpr char kRetryInfoUrl[] = "type.googleapis.com/google.rpc.RetryInfo";

// For what has no measure of its own load.
constexpr absl::Duration kDefaultRetryDelay = absl::Seconds(1);

constexpr ErrorReasonEntry kReasons[] = {
    {ErrorReason::kInvalidRequest, "INVALID_REQUEST",
     StatusCode::kInvalidArgument, false,
     "a field or value is not allowed; the message names it and the limit"},
    {ErrorReason::kInvalidApiKey, "INVALID_API_KEY",
     StatusCode::kUnauthenticated, false,
     "the gateway needs an API key, and got none that it knows"},
    {ErrorReason::kModelNotFound, "MODEL_NOT_FOUND", StatusCode::kNotFound,
     false, "no model of this name is served"},
    {ErrorReason::kRequestIdTaken, "REQUEST_ID_TAKEN",
     StatusCode::kAlreadyExists, false, "a live request has this request_id"},
    {ErrorReason::kOverloaded, "OVERLOADED", StatusCode::kResourceExhausted,
     true, "a process holds as many requests, or bytes of them, as it may"},
    {ErrorReason::kQueueFullRequests, "QUEUE_FULL_REQUESTS",
     StatusCode::kResourceExhausted, true,
     "--max_queued_requests wait in the group"},
    {ErrorReason::kQueueFullTokens, "QUEUE_FULL_TOKENS",
     StatusCode::kResourceExhausted, true,
     "--max_queued_tokens of prompts wait in the group"},
    {ErrorReason::kKeyLimit, "KEY_LIMIT", StatusCode::kResourceExhausted, true,
     "the API key has used up a limit of its own"},
    {ErrorReason::kSlowReader, "SLOW_READER", StatusCode::kResourceExhausted,
     false, "the client read its stream too slowly"},
    {ErrorReason::kUnavailable, "UNAVAILABLE", StatusCode::kUnavailable, true,
     "none of those below; the message says more"},
    {ErrorReason::kWorkerStarting, "WORKER_STARTING", StatusCode::kUnavailable,
     true, "the worker group has formed and loads or warms up"},
    {ErrorReason::kWorkerDraining, "WORKER_DRAINING", StatusCode::kUnavailable,
     true, "the worker group takes no new requests"},
    {ErrorReason::kWorkerStopped, "WORKER_STOPPED", StatusCode::kUnavailable,
     true, "the worker group shut down before the request had ended"},
    {ErrorReason::kGroupFailed, "GROUP_FAILED", StatusCode::kUnavailable, true,
     "a rank failed; metadata has the first one's `rank` and the `kind` of its "
     "failure"},
    {ErrorReason::kWorkerUnreachable, "WORKER_UNREACHABLE",
     StatusCode::kUnavailable, true,
     "the gateway has no connection to the worker group, or lost it"},
    {ErrorReason::kGatewayDraining, "GATEWAY_DRAINING",
     StatusCode::kUnavailable, true, "the gateway is shutting down"},
    {ErrorReason::kDeadlineExceeded, "DEADLINE_EXCEEDED",
     StatusCode::kDeadlineExceeded, false,
     "the call's deadline passed before the answer was complete"},
    {ErrorReason::kDeadlineInQueue, "DEADLINE_IN_QUEUE",
     StatusCode::kDeadlineExceeded, false,
     "the call's deadline passed before the first step: nothing was computed"},
    {ErrorReason::kClientCancelled, "CLIENT_CANCELLED", StatusCode::kCancelled,
     false, "the client cancelled the call or is gone"},
    {ErrorReason::kWorkerStopping, "WORKER_STOPPING",
     StatusCode::kFailedPrecondition, false,
     "Undrain of a group that shuts down or has failed"},
    {ErrorReason::kInternal, "INTERNAL", StatusCode::kInternal, false,
     "a fault of ours; the log has more"},
    {ErrorReason::kNotFinite, "NOT_FINITE", StatusCode::kInternal, false,
     "the model computed no number: all its logits for a token, or a value of "
     "the embedding, are NaN or infinite"},
};

// None for a precondition, which can be anything: only Undrain's has a reason.
const ErrorReasonEntry* DefaultOf(StatusCode code) {
  if (code == StatusCode::kFailedPrecondition) return nullptr;
  for (const ErrorReasonEntry& entry : kReasons) {
    if (entry.code == code) return &entry;
  }
  return nullptr;
}

absl::Status Describe(absl::Status status, const ErrorReasonEntry& entry,
                      const ErrorDetails& details) {
  google::rpc::ErrorInfo info;
  info.set_reason(std::string(entry.name));
  info.set_domain(kDomain);
  info.mutable_metadata()->insert(details.metadata.begin(),
                                  details.metadata.end());
  (*info.mutable_metadata())["retryable"] = entry.retryable ? "true" : "false";
  status.SetPayload(kErrorInfoUrl, absl::Cord(info.SerializeAsString()));
  if (details.retry_delay.has_value()) {
    google::rpc::RetryInfo retry;
    *retry.mutable_retry_delay() = TimeUtil::MillisecondsToDuration(
        absl::ToInt64Milliseconds(*details.retry_delay));
    status.SetPayload(kRetryInfoUrl, absl::Cord(retry.SerializeAsString()));
  }
  return status;
}

google::rpc::ErrorInfo InfoOf(const absl::Status& status) {
  google::rpc::ErrorInfo info;
  const auto payload = status.GetPayload(kErrorInfoUrl);
  if (!payload.has_value() || !info.ParseFromString(std::string(*payload)) ||
      info.domain() != kDomain) {
    info.Clear();
  }
  return info;
}

}  // namespace

absl::Span<const ErrorReasonEntry> ErrorReasons() { return kReasons; }

absl::Status MakeError(ErrorReason reason, absl::string_view message,
                       const ErrorDetails& details) {
  const ErrorReasonEntry& entry = kReasons[static_cast<size_t>(reason)];
  return Describe(absl::Status(entry.code, message), entry, details);
}

absl::Status WithDefaultReason(const absl::Status& status) {
  const ErrorReasonEntry* const entry = DefaultOf(status.code());
  if (entry == nullptr || !ErrorReasonOf(status).empty()) return status;
  ErrorDetails details;
  if (entry->reason == ErrorReason::kOverloaded) {
    details.retry_delay = kDefaultRetryDelay;
  }
  return Describe(status, *entry, details);
}

absl::Status WithMessage(const absl::Status& status,
                         absl::string_view message) {
  absl::Status result(status.code(), message);
  status.ForEachPayload(
      [&result](absl::string_view url, const absl::Cord& payload) {
        result.SetPayload(url, payload);
      });
  return result;
}

const ErrorReasonEntry* ErrorReasonEntryOf(const absl::Status& status) {
  const std::string name = ErrorReasonOf(status);
  if (name.empty()) return DefaultOf(status.code());
  for (const ErrorReasonEntry& entry : kReasons) {
    if (entry.name == name) return &entry;
  }
  return nullptr;
}

std::string ErrorReasonOf(const absl::Status& status) {
  return InfoOf(status).reason();
}

std::map<std::string, std::string> ErrorMetadataOf(const absl::Status& status) {
  const google::rpc::ErrorInfo info = InfoOf(status);
  return {info.metadata().begin(), info.metadata().end()};
}

std::optional<absl::Duration> RetryDelayOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryInfoUrl);
  google::rpc::RetryInfo retry;
  if (!payload.has_value() || !retry.ParseFromString(std::string(*payload))) {
    return std::nullopt;
  }
  return absl::Milliseconds(
      TimeUtil::DurationToMilliseconds(retry.retry_delay()));
}

}  // namespace lockstep
