#include "common/metrics/reason_label.h"

#include <gtest/gtest.h>

#include "common/error_reason.h"

namespace lockstep {
namespace {

TEST(ReasonLabelTest, IsTheReasonOrThatOfTheCode) {
  EXPECT_EQ(ReasonLabel(MakeError(ErrorReason::kQueueFullTokens, "full")),
            "QUEUE_FULL_TOKENS");
  EXPECT_EQ(ReasonLabel(absl::InvalidArgumentError("n is 0")),
            "INVALID_REQUEST");
  EXPECT_EQ(ReasonLabel(absl::FailedPreconditionError("not now")), "OTHER");
}

}  // namespace
}  // namespace lockstep
