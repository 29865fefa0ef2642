#include "frontend/ledger/answer_record.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

namespace lockstep {

std::string FormatAnswer(const AnswerRecord& record) {
  std::string line = absl::StrCat("request ", record.request_id);
  if (!record.worker_request_id.empty() &&
      record.worker_request_id != record.request_id) {
    absl::StrAppend(&line, " worker_request=", record.worker_request_id);
  }
  if (!record.trace_id.empty()) {
    absl::StrAppend(&line, " trace=", record.trace_id);
  }
  if (!record.key_name.empty()) {
    absl::StrAppend(&line, " key=", record.key_name);
  }
  absl::StrAppend(&line,
                  " status=", absl::StatusCodeToString(record.status.code()));
  const char* separator = " finish=";
  for (const v1::FinishReason reason : record.finish_reasons) {
    absl::StrAppend(&line, separator, v1::FinishReason_Name(reason));
    separator = ",";
  }
  absl::StrAppend(&line, " prompt_tokens=", record.usage.prompt_tokens(),
                  " cached_tokens=", record.usage.cached_tokens(),
                  " completion_tokens=", record.usage.completion_tokens());
  if (record.first_token.has_value()) {
    absl::StrAppend(&line, " first_token_ms=",
                    absl::ToInt64Milliseconds(*record.first_token));
  }
  if (record.failovers > 0) {
    absl::StrAppend(&line, " failovers=", record.failovers);
  }
  absl::StrAppend(&line, " total_ms=", absl::ToInt64Milliseconds(record.total));
  return line;
}

void LogAnswer(const AnswerRecord& record) {
  LOG(INFO) << FormatAnswer(record);
  LOG_IF(ERROR, absl::IsInternal(record.status))
      << "request " << record.request_id
      << " failed by a fault: " << record.status.message();
}

}  // namespace lockstep
