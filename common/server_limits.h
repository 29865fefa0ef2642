#pragma once

#include <grpcpp/grpcpp.h>

namespace lockstep {

// After so long without a word a peer is asked for one, and has so long to
// answer.
inline constexpr int kPingIntervalMs = 30'000;
inline constexpr int kPingTimeoutMs = 10'000;

// What every gRPC server of ours is built with: peers that are gone without a
// word are noticed within a minute, and a port has one server alone.
void SetServerLimits(grpc::ServerBuilder* builder);

}  // namespace lockstep
