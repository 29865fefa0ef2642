#include "common/grpc_status.h"

#include <absl/strings/cord.h>
#include <gtest/gtest.h>

#include "common/error_reason.h"
#include "common/rpc_status.pb.h"

namespace lockstep {
namespace {

TEST(GrpcStatus, EveryCodeGoesThereAndBack) {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code),
                              code == 0 ? "" : "what, where, value, limit");
    EXPECT_EQ(ToGrpc(status).error_code(), code);
    EXPECT_EQ(FromGrpc(ToGrpc(status)), WithDefaultReason(status));
  }
}

TEST(GrpcStatus, DetailsAreAStatusOfItsOwnWithAReason) {
  const grpc::Status status = ToGrpc(
      MakeError(ErrorReason::kQueueFullTokens, "the queue is full.",
                {.metadata = {}, .retry_delay = absl::Milliseconds(2500)}));
  google::rpc::Status details;
  ASSERT_TRUE(details.ParseFromString(status.error_details()));
  EXPECT_EQ(details.code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(details.message(), "the queue is full.");
  google::rpc::ErrorInfo info;
  google::rpc::RetryInfo retry;
  for (const auto& detail : details.details()) {
    EXPECT_TRUE(detail.UnpackTo(&info) || detail.UnpackTo(&retry));
  }
  EXPECT_EQ(info.domain(), "lockstep");
  EXPECT_EQ(info.reason(), "QUEUE_FULL_TOKENS");
  EXPECT_EQ(retry.retry_delay().seconds(), 2);
  EXPECT_EQ(retry.retry_delay().nanos(), 500'000'000);
}

TEST(GrpcStatus, ALongMessageIsNotSentTwice) {
  const std::string message(3000, 'x');
  const grpc::Status status = ToGrpc(absl::InvalidArgumentError(message));
  EXPECT_EQ(status.error_message(), message);
  EXPECT_LT(status.error_details().size(), 200);
  EXPECT_EQ(ErrorReasonOf(FromGrpc(status)), "INVALID_REQUEST");
}

TEST(GrpcStatus, PayloadsThatAreNoMessageStayHere) {
  absl::Status status = MakeError(ErrorReason::kInvalidRequest, "odd");
  const absl::Status sent = status;
  status.SetPayload("lockstep/field", absl::Cord("n"));
  EXPECT_EQ(FromGrpc(ToGrpc(status)), sent);
}

TEST(GrpcStatus, DetailsThatAreNoneAreLeftOut) {
  const grpc::Status status(grpc::StatusCode::INTERNAL, "odd", "\xff\xff");
  EXPECT_EQ(FromGrpc(status), absl::InternalError("odd"));
}

}  // namespace
}  // namespace lockstep
