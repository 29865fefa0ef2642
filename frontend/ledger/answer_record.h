#pragma once

#include <absl/status/status.h>
#include <absl/time/time.h>

#include <optional>
#include <string>
#include <vector>

#include "proto/sampling.pb.h"

namespace lockstep {

// What the logs keep of an answer; never its text.
struct AnswerRecord {
  std::string request_id = "-";   // where it is not known to be fit for a log
  std::string worker_request_id;  // if it differs
  std::string key_name;           // of the API key; empty: none is needed
  std::string trace_id;
  std::string model;
  v1::Usage usage;
  std::optional<absl::Duration> first_token;  // from the request's start
  absl::Duration total;
  std::vector<v1::FinishReason> finish_reasons;  // one for each choice
  int failovers = 0;  // to other groups, in the midst of it
  absl::Status status;
};

// "request r1 status=OK finish=STOP prompt_tokens=12 cached_tokens=8
// completion_tokens=24 first_token_ms=35 total_ms=410". Of a status only the
// code, as its words can quote the request.
std::string FormatAnswer(const AnswerRecord& record);

// One line at an answer's end; one more with the words of an INTERNAL status,
// which are ours.
void LogAnswer(const AnswerRecord& record);

}  // namespace lockstep
