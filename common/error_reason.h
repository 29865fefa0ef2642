#pragma once

#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/time/time.h>
#include <absl/types/span.h>

#include <map>
#include <optional>
#include <string>

namespace lockstep {

// Why a call failed, for programs; the message is for people. docs/errors.md is
// this table in words.
enum class ErrorReason {
  kInvalidRequest,
  kInvalidApiKey,
  kModelNotFound,
  kRequestIdTaken,
  kOverloaded,
  kQueueFullRequests,
  kQueueFullTokens,
  kKeyLimit,
  kSlowReader,
  kUnavailable,
  kWorkerStarting,
  kWorkerDraining,
  kWorkerStopped,
  kGroupFailed,
  kWorkerUnreachable,
  kGatewayDraining,
  kDeadlineExceeded,
  kDeadlineInQueue,
  kClientCancelled,
  kWorkerStopping,
  kInternal,
  kNotFinite,
};

struct ErrorReasonEntry {
  ErrorReason reason;
  absl::string_view name;  // as sent
  absl::StatusCode code;
  // The same request may succeed if it is sent again, here or elsewhere.
  bool retryable;
  absl::string_view when;
};

// In the order of the enum. The first of each code is that code's default; only
// a FAILED_PRECONDITION, which can be anything, has none.
absl::Span<const ErrorReasonEntry> ErrorReasons();

struct ErrorDetails {
  std::map<std::string, std::string> metadata = {};  // beside "retryable"
  std::optional<absl::Duration> retry_delay = std::nullopt;
};

// A status with the code of `reason` and, as payloads, google.rpc.ErrorInfo
// {name, "lockstep", metadata} and, where a delay is given, RetryInfo. They
// travel with it: see ToGrpc.
//
//   return MakeError(ErrorReason::kQueueFullRequests, "the queue is full…",
//                    {.retry_delay = absl::Seconds(1)});
//
// All of these are pure functions; any thread.
absl::Status MakeError(ErrorReason reason, absl::string_view message,
                       const ErrorDetails& details = {});

// `status` with its code's default reason, where it has none and its code has
// one.
absl::Status WithDefaultReason(const absl::Status& status);

// `status` in other words: the payloads stay.
absl::Status WithMessage(const absl::Status& status, absl::string_view message);

// The entry of its own reason, else of its code's. Null where there is none, or
// one that this build does not know.
const ErrorReasonEntry* ErrorReasonEntryOf(const absl::Status& status);

// Empty where there is none; also one that this build does not know.
std::string ErrorReasonOf(const absl::Status& status);
std::map<std::string, std::string> ErrorMetadataOf(const absl::Status& status);
std::optional<absl::Duration> RetryDelayOf(const absl::Status& status);

}  // namespace lockstep
