#include "frontend/generation/request_log.h"

#include <absl/strings/str_cat.h>
#include <glog/logging.h>

namespace lockstep {

std::string FormatRequest(const RequestRecord& record) {
  std::string line = absl::StrCat("request ", record.request_id);
  if (!record.worker_request_id.empty() &&
      record.worker_request_id != record.request_id) {
    absl::StrAppend(&line, " (", record.worker_request_id, ")");
  }
  absl::StrAppend(&line, ": ", absl::StatusCodeToString(record.status.code()));
  for (const v1::FinishReason reason : record.finish_reasons) {
    absl::StrAppend(&line, " ", v1::FinishReason_Name(reason));
  }
  absl::StrAppend(&line, "; ", record.usage.prompt_tokens(), " prompt tokens (",
                  record.usage.cached_tokens(), " cached), ",
                  record.usage.completion_tokens(), " out; ");
  if (record.first_token.has_value()) {
    absl::StrAppend(&line, "first token ",
                    absl::ToInt64Milliseconds(*record.first_token), " ms, ");
  }
  absl::StrAppend(&line, "total ", absl::ToInt64Milliseconds(record.total),
                  " ms");
  return line;
}

void LogRequest(const RequestRecord& record) {
  LOG(INFO) << FormatRequest(record);
}

}  // namespace lockstep
