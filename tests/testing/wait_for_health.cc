#include "tests/testing/wait_for_health.h"

#include <gtest/gtest.h>

#include "common/health.grpc.pb.h"

namespace lockstep::testing {

using ::grpc::health::v1::Health;
using ::grpc::health::v1::HealthCheckRequest;
using ::grpc::health::v1::HealthCheckResponse;

void WaitForHealth(const std::shared_ptr<grpc::Channel>& channel,
                   const std::string& service,
                   HealthCheckResponse::ServingStatus status) {
  grpc::ClientContext context;
  HealthCheckRequest request;
  request.set_service(service);
  const auto stream = Health::NewStub(channel)->Watch(&context, request);
  HealthCheckResponse health;
  while (stream->Read(&health) && health.status() != status) continue;
  EXPECT_EQ(health.status(), status);
  context.TryCancel();
  stream->Finish();
}

}  // namespace lockstep::testing
