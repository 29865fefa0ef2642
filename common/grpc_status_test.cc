#include "common/grpc_status.h"

#include <gtest/gtest.h>

namespace lockstep {
namespace {

TEST(GrpcStatus, EveryCodeGoesThereAndBack) {
  for (int code = 0; code <= 16; ++code) {
    const absl::Status status(static_cast<absl::StatusCode>(code),
                              code == 0 ? "" : "what, where, value, limit");
    EXPECT_EQ(ToGrpc(status).error_code(), code);
    EXPECT_EQ(FromGrpc(ToGrpc(status)), status);
  }
}

}  // namespace
}  // namespace lockstep
