#include "frontend/ledger/access_record.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <nlohmann/json.hpp>

#include "common/metrics/reason_label.h"

namespace lockstep {
namespace {

using Json = nlohmann::ordered_json;

constexpr absl::string_view kHttp = "http";

double Milliseconds(absl::Duration duration) {
  return absl::ToInt64Microseconds(duration) / 1000.0;
}

// RFC 3339, with milliseconds.
std::string FormatUtc(absl::Time time) {
  const int64_t ms = absl::ToUnixMillis(time);
  const std::time_t seconds = ms / 1000;
  std::tm utc = {};
  gmtime_r(&seconds, &utc);
  char text[] = "YYYY-MM-DDThh:mm:ss";
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
  return absl::StrFormat("%s.%03dZ", text, ms % 1000);
}

void AddUnlessEmpty(const char* name, const std::string& value, Json& line) {
  if (!value.empty()) line[name] = value;
}

void Add(const v1::Usage& more, v1::Usage& usage) {
  usage.set_prompt_tokens(usage.prompt_tokens() + more.prompt_tokens());
  usage.set_cached_tokens(usage.cached_tokens() + more.cached_tokens());
  usage.set_completion_tokens(usage.completion_tokens() +
                              more.completion_tokens());
}

}  // namespace

void AccessRecord::SetHttpStatus(int status) {
  absl::MutexLock lock(&mutex_);
  if (!http_status_.has_value()) http_status_ = status;
}

void AccessRecord::SetGrpcStatus(const absl::Status& status) {
  absl::MutexLock lock(&mutex_);
  status_.Update(status);
}

void AccessRecord::AddAnswer(const AnswerRecord& answer) {
  absl::MutexLock lock(&mutex_);
  has_answer_ = true;
  request_id_ = answer.request_id;
  key_name_ = answer.key_name;
  model_ = answer.model;
  status_.Update(answer.status);
  Add(answer.usage, usage_);
  finish_reasons_.insert(finish_reasons_.end(), answer.finish_reasons.begin(),
                         answer.finish_reasons.end());
  failovers_ += answer.failovers;
  if (answer.first_token.has_value()) {
    first_token_ = std::min(*answer.first_token,
                            first_token_.value_or(absl::InfiniteDuration()));
  }
}

std::string AccessRecord::code() const {
  absl::MutexLock lock(&mutex_);
  if (request_.surface == kHttp) {
    return absl::StrCat(http_status_.value_or(kClientGone));
  }
  return absl::StatusCodeToString(status_.code());
}

std::string AccessRecord::ToJson(absl::Time ended) const {
  absl::MutexLock lock(&mutex_);
  Json line;
  line["time"] = FormatUtc(request_.arrived);
  line["request_id"] = request_id_.empty() ? request_.request_id : request_id_;
  line["trace_id"] = request_.trace.trace_id;
  line["span_id"] = request_.trace.span_id;
  line["client"] = request_.client;
  AddUnlessEmpty("key", key_name_, line);
  line["surface"] = std::string(request_.surface);
  AddUnlessEmpty("method", request_.method, line);
  line["route"] = request_.route;
  AddUnlessEmpty("model", model_, line);
  if (request_.surface == kHttp) {
    line["http_status"] = http_status_.value_or(kClientGone);
  }
  if (request_.surface != kHttp || has_answer_) {
    line["status"] = absl::StatusCodeToString(status_.code());
  }
  if (!status_.ok()) line["reason"] = std::string(ReasonLabel(status_));
  if (has_answer_) {
    Json& finish = line["finish"] = Json::array();
    for (const auto reason : finish_reasons_) {
      finish.push_back(v1::FinishReason_Name(reason));
    }
    line["prompt_tokens"] = usage_.prompt_tokens();
    line["cached_tokens"] = usage_.cached_tokens();
    line["completion_tokens"] = usage_.completion_tokens();
    if (failovers_ > 0) line["failovers"] = failovers_;
  }
  if (first_token_.has_value()) {
    line["first_token_ms"] = Milliseconds(*first_token_);
  }
  line["total_ms"] = Milliseconds(ended - request_.arrived);
  return line.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/true,
                   Json::error_handler_t::replace) +
         '\n';
}

}  // namespace lockstep
