#pragma once

#include <absl/base/thread_annotations.h>
#include <absl/status/status.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/mutex.h>
#include <absl/time/time.h>

#include <optional>
#include <string>
#include <vector>

#include "common/tracing/trace_context.h"
#include "frontend/ledger/answer_record.h"
#include "proto/sampling.pb.h"

namespace lockstep {

// One request, from its arrival to its end: who asked for what, and what came
// of it; never its text. RequestLedger begins and ends it. Any thread.
class AccessRecord {
 public:
  // As it is known when it has arrived.
  struct Request {
    absl::string_view surface = {};  // "http" or "grpc"; a constant
    std::string method = {};         // of HTTP
    std::string route = {};       // of a table: a path's pattern, an RPC's name
    std::string client = {};      // its address, without the port
    std::string request_id = {};  // fit for a log; empty: the message has it
    TraceContext trace = {};
    absl::Time arrived = {};
  };

  // The status of an HTTP request that nobody waits for any more.
  static constexpr int kClientGone = 499;

  explicit AccessRecord(Request request) : request_(std::move(request)) {}

  const Request& request() const { return request_; }

  // What the client was told; the first counts.
  void SetHttpStatus(int status);
  void SetGrpcStatus(const absl::Status& status);

  // An answer has ended; a request has one for each of its prompts.
  void AddAnswer(const AnswerRecord& answer);

  // "200", "INVALID_ARGUMENT".
  std::string code() const;

  // One line of JSON, which ends with '\n'. Fields that do not apply are left
  // out.
  std::string ToJson(absl::Time ended) const;

 private:
  const Request request_;

  mutable absl::Mutex mutex_;
  std::string request_id_ ABSL_GUARDED_BY(mutex_);  // of the message
  std::string key_name_ ABSL_GUARDED_BY(mutex_);
  std::string model_ ABSL_GUARDED_BY(mutex_);
  std::optional<int> http_status_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);  // the first failure
  bool has_answer_ ABSL_GUARDED_BY(mutex_) = false;
  v1::Usage usage_ ABSL_GUARDED_BY(mutex_);
  std::vector<v1::FinishReason> finish_reasons_ ABSL_GUARDED_BY(mutex_);
  int failovers_ ABSL_GUARDED_BY(mutex_) = 0;
  std::optional<absl::Duration> first_token_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
