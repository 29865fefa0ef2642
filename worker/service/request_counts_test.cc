#include "worker/service/request_counts.h"

#include <gtest/gtest.h>

#include <memory>

namespace lockstep {
namespace {

struct Choices {
  explicit Choices(uint32_t n) {
    auto request = std::make_shared<v1::AddRequest>();
    request->set_request(1);
    request->mutable_sampling()->set_n(n);
    stream =
        std::make_shared<OutputStream>("a", request, OutputStream::Options());
  }
  std::shared_ptr<OutputStream> stream;
};

TEST(RequestCounts, EachRequestHasOneEnd) {
  using Count = uint64_t (v1::RequestCounts::*)() const;
  const struct {
    absl::StatusCode code;
    v1::AbortCause cause;
    v1::FinishReason reason;
    Count count;
  } kCases[] = {
      {absl::StatusCode::kOk, v1::ABORT_CAUSE_UNSPECIFIED, v1::STOP,
       &v1::RequestCounts::completed},
      // It had ended when the abort came.
      {absl::StatusCode::kOk, v1::ABORT_CALL, v1::LENGTH,
       &v1::RequestCounts::completed},
      {absl::StatusCode::kOk, v1::ABORT_CALL, v1::ABORTED,
       &v1::RequestCounts::abort_call},
      {absl::StatusCode::kCancelled, v1::CLIENT_CANCELLED, v1::ABORTED,
       &v1::RequestCounts::client_cancelled},
      // All was computed, but its client did not get it.
      {absl::StatusCode::kCancelled, v1::CLIENT_CANCELLED, v1::LENGTH,
       &v1::RequestCounts::client_cancelled},
      {absl::StatusCode::kDeadlineExceeded, v1::DEADLINE, v1::ABORTED,
       &v1::RequestCounts::deadline},
      {absl::StatusCode::kResourceExhausted, v1::SLOW_READER, v1::ABORTED,
       &v1::RequestCounts::slow_reader},
      {absl::StatusCode::kUnavailable, v1::SHUTDOWN, v1::ABORTED,
       &v1::RequestCounts::shutdown},
      {absl::StatusCode::kUnavailable, v1::ABORT_CAUSE_UNSPECIFIED,
       v1::FINISH_REASON_UNSPECIFIED, &v1::RequestCounts::failed},
  };
  RequestCounts counts;
  uint64_t ended = 0;
  for (const auto& [code, cause, reason, count] : kCases) {
    const v1::RequestCounts before = counts.counts();
    const Choices one(1);
    counts.Accepted();
    if (cause != v1::ABORT_CAUSE_UNSPECIFIED)
      one.stream->set_abort_cause(cause, /*of_all=*/true);
    one.stream->Fail(absl::Status(code, "why"));
    if (reason != v1::FINISH_REASON_UNSPECIFIED) {
      one.stream->OnFinish(0, reason, std::nullopt);
    }
    counts.Ended(*one.stream);
    const v1::RequestCounts after = counts.counts();
    EXPECT_EQ((after.*count)(), (before.*count)() + 1) << ended;
    ++ended;
    EXPECT_EQ(after.accepted(), ended);
    EXPECT_EQ(after.completed() + after.client_cancelled() + after.deadline() +
                  after.abort_call() + after.slow_reader() + after.shutdown() +
                  after.failed(),
              ended);
    EXPECT_EQ(after.choices_stop() + after.choices_length() +
                  after.choices_ended_early(),
              ended);
  }
}

TEST(RequestCounts, ChoicesCountByThemselves) {
  RequestCounts counts;
  const Choices three(3);
  three.stream->OnFinish(0, v1::STOP, std::nullopt);
  three.stream->OnFinish(1, v1::LENGTH, std::nullopt);
  three.stream->OnFinish(2, v1::STOP, std::nullopt);
  counts.Ended(*three.stream);
  counts.Refused(absl::ResourceExhaustedError("full"));
  EXPECT_EQ(counts.counts().choices_stop(), 2);
  EXPECT_EQ(counts.counts().choices_length(), 1);
  EXPECT_EQ(counts.counts().completed(), 1);
  EXPECT_EQ(counts.counts().refused(), 1);
  EXPECT_EQ(counts.refusals(),
            (std::map<std::string, uint64_t>{{"OVERLOADED", 1}}));
}

}  // namespace
}  // namespace lockstep
