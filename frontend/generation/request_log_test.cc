#include "frontend/generation/request_log.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(RequestLog, OneLineForAnAnswer) {
  RequestRecord record;
  record.request_id = "r1";
  record.worker_request_id = "r1-00ff";
  record.usage.set_prompt_tokens(12);
  record.usage.set_cached_tokens(8);
  record.usage.set_completion_tokens(24);
  record.first_token = absl::Milliseconds(35);
  record.total = absl::Milliseconds(410);
  record.finish_reasons = {v1::STOP, v1::LENGTH};
  EXPECT_EQ(FormatRequest(record),
            "request r1 (r1-00ff): OK STOP LENGTH; 12 prompt tokens (8 "
            "cached), 24 out; first token 35 ms, total 410 ms");
}

TEST(RequestLog, OneLineForARefusalWithoutItsWords) {
  RequestRecord record;
  record.request_id = "r2";
  record.total = absl::Milliseconds(1);
  record.status = absl::InvalidArgumentError("the client's own text");
  EXPECT_EQ(FormatRequest(record),
            "request r2: INVALID_ARGUMENT; 0 prompt tokens (0 cached), 0 out; "
            "total 1 ms");
}

}  // namespace
}  // namespace lockstep
