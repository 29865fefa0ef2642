#include "bench/gateway_calls.h"

#include "common/grpc_server.h"

namespace lockstep::bench {

std::shared_ptr<grpc::Channel> Connect(const std::string& target) {
  grpc::ChannelArguments arguments = ChannelArguments();
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(),
                                   arguments);
}

v1::GenerateRequest GreedyRequest(absl::Span<const uint32_t> prompt_ids,
                                  int output_tokens) {
  v1::GenerateRequest request;
  *request.mutable_token_ids()->mutable_ids() = {prompt_ids.begin(),
                                                 prompt_ids.end()};
  request.mutable_sampling()->set_temperature(0);
  request.mutable_sampling()->set_max_tokens(output_tokens);
  request.mutable_sampling()->set_ignore_eos(true);
  return request;
}

}  // namespace lockstep::bench
