#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>

#include "common/health.pb.h"

namespace lockstep::testing {

// Follows the health of a service behind a channel until it has this status; a
// test failure if the server goes before.
//
//   WaitForHealth(channel, v1::Inference::service_full_name(),
//                 grpc::health::v1::HealthCheckResponse::SERVING);
void WaitForHealth(const std::shared_ptr<grpc::Channel>& channel,
                   const std::string& service,
                   grpc::health::v1::HealthCheckResponse::ServingStatus status);

}  // namespace lockstep::testing
