#include "frontend/grpc/responses.h"

#include <utility>

namespace lockstep {

v1::GenerateResponse ToResponse(AcceptedEvent event) {
  v1::GenerateResponse response;
  v1::GenerateAccepted& accepted = *response.mutable_accepted();
  accepted.set_request_id(std::move(event.request_id));
  accepted.set_model(std::move(event.model));
  accepted.set_prompt_tokens(event.prompt_tokens);
  accepted.set_seed(event.seed);
  accepted.mutable_prompt_token_ids()->Add(event.prompt_token_ids.begin(),
                                           event.prompt_token_ids.end());
  accepted.set_prompt_text(std::move(event.prompt_text));
  accepted.set_system_fingerprint(std::move(event.system_fingerprint));
  return response;
}

v1::GenerateResponse ToResponse(DeltaEvent event) {
  v1::GenerateResponse response;
  v1::TextDelta& delta = *response.mutable_delta();
  delta.set_index(event.index);
  delta.set_text(std::move(event.text));
  delta.mutable_token_ids()->Add(event.token_ids.begin(),
                                 event.token_ids.end());
  delta.mutable_logprobs()->Add(event.logprobs.begin(), event.logprobs.end());
  delta.mutable_prompt_logprobs()->Add(event.prompt_logprobs.begin(),
                                       event.prompt_logprobs.end());
  delta.set_reasoning(std::move(event.reasoning));
  for (ToolCallDelta& part : event.tool_calls) {
    v1::ToolCallDelta& call = *delta.add_tool_calls();
    call.set_index(part.index);
    call.set_id(std::move(part.id));
    call.set_name(std::move(part.name));
    call.set_arguments(std::move(part.arguments));
  }
  return response;
}

v1::GenerateResponse ToResponse(FinishEvent event) {
  v1::GenerateResponse response;
  v1::TextFinish& finish = *response.mutable_finish();
  finish.set_index(event.index);
  finish.set_reason(event.reason);
  if (event.stop_token_id.has_value()) {
    finish.set_stop_token_id(*event.stop_token_id);
  } else if (event.stop_string.has_value()) {
    finish.set_stop_string(*std::move(event.stop_string));
  }
  *finish.mutable_usage() = std::move(event.usage);
  finish.set_reasoning_tokens(event.reasoning_tokens);
  finish.set_awaits_tools(event.awaits_tools);
  return response;
}

v1::GenerateResponse ToResponse(SummaryEvent event) {
  v1::GenerateResponse response;
  *response.mutable_summary()->mutable_usage() = std::move(event.usage);
  *response.mutable_summary()->mutable_timing() = std::move(event.timing);
  response.mutable_summary()->set_reasoning_tokens(event.reasoning_tokens);
  return response;
}

}  // namespace lockstep
