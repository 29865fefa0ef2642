#include "frontend/ledger/answer_record.h"

#include <glog/logging.h>
#include <gtest/gtest.h>

#include <string>

namespace lockstep {
namespace {

TEST(AnswerRecordTest, OneLineForAnAnswer) {
  AnswerRecord record;
  record.request_id = "r1";
  record.worker_request_id = "r1-00ff";
  record.trace_id = "0af7";
  record.usage.set_prompt_tokens(12);
  record.usage.set_cached_tokens(8);
  record.usage.set_completion_tokens(24);
  record.first_token = absl::Milliseconds(35);
  record.total = absl::Milliseconds(410);
  record.finish_reasons = {v1::STOP, v1::LENGTH};
  EXPECT_EQ(FormatAnswer(record),
            "request r1 worker_request=r1-00ff trace=0af7 status=OK "
            "finish=STOP,LENGTH "
            "prompt_tokens=12 cached_tokens=8 completion_tokens=24 "
            "first_token_ms=35 total_ms=410");
}

TEST(AnswerRecordTest, TheKeyIsNamed) {
  AnswerRecord record;
  record.request_id = "r1";
  record.key_name = "alice";
  EXPECT_EQ(FormatAnswer(record),
            "request r1 key=alice status=OK prompt_tokens=0 cached_tokens=0 "
            "completion_tokens=0 total_ms=0");
}

TEST(AnswerRecordTest, OneLineForARefusalWithoutItsWords) {
  AnswerRecord record;
  record.request_id = "r2";
  record.total = absl::Milliseconds(1);
  record.status = absl::InvalidArgumentError("the client's own text");
  EXPECT_EQ(FormatAnswer(record),
            "request r2 status=INVALID_ARGUMENT prompt_tokens=0 "
            "cached_tokens=0 completion_tokens=0 total_ms=1");
}

TEST(AnswerRecordTest, AFaultOfOursHasItsWords) {
  AnswerRecord record;
  record.request_id = "r3";
  const auto logged = [&] {
    ::testing::internal::CaptureStderr();
    LogAnswer(record);
    google::FlushLogFiles(google::INFO);
    return ::testing::internal::GetCapturedStderr();
  };
  FLAGS_logtostderr = true;
  record.status = absl::InternalError("the worker went on.");
  EXPECT_NE(logged().find("request r3 failed by a fault: the worker went on."),
            std::string::npos);
  record.status = absl::InvalidArgumentError("the client's own text");
  EXPECT_EQ(logged().find("own text"), std::string::npos);
}

}  // namespace
}  // namespace lockstep
