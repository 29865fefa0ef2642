#pragma once

#include <absl/types/span.h>
#include <grpcpp/grpcpp.h>

#include <cstdint>
#include <memory>
#include <string>

#include "proto/inference.pb.h"

namespace lockstep::bench {

// To `target`, host:port of a gateway, over a connection of its own.
std::shared_ptr<grpc::Channel> Connect(const std::string& target);

// Greedy, for exactly `output_tokens`: the end of a text is ignored.
v1::GenerateRequest GreedyRequest(absl::Span<const uint32_t> prompt_ids,
                                  int output_tokens);

}  // namespace lockstep::bench
