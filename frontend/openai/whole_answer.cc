#include "frontend/openai/whole_answer.h"

#include <absl/status/status.h>
#include <absl/strings/str_cat.h>

#include <iterator>
#include <utility>

#include "frontend/openai/error_response.h"

namespace lockstep::openai {
namespace {

// As JSON: a token's id, and what is said of a candidate at a position.
constexpr size_t kIdBytes = 8;
constexpr size_t kCandidateBytes = 80;

size_t SizeOf(const DeltaEvent& event) {
  size_t bytes = event.text.size() + 2 * event.reasoning.size() +
                 kIdBytes * event.token_ids.size();
  for (const ToolCallDelta& part : event.tool_calls) {
    bytes += part.arguments.size();
  }
  for (const auto* positions : {&event.logprobs, &event.prompt_logprobs}) {
    for (const v1::PositionLogprobs& position : *positions) {
      bytes += kCandidateBytes * (1 + position.top_size());
    }
  }
  return bytes;
}

}  // namespace

WholeAnswer::WholeAnswer(AnswerStyle style, size_t prompts,
                         const Tokenizer* tokenizer,
                         std::shared_ptr<http::ResponseWriter> writer)
    : AnswerWriter(std::move(style), prompts, tokenizer, std::move(writer)),
      choices_(prompts * style_.n) {}

void WholeAnswer::Keep(const DeltaEvent& event) {
  bytes_ += SizeOf(event);
  if (writer_->Hold(bytes_)) return;
  failure_ = absl::ResourceExhaustedError(
      "the gateway holds too many large answers already; try again later, or "
      "have the answer streamed.");
}

void WholeAnswer::Show(size_t prompt, Piece piece) {
  Choice& choice = choices_[ChoiceOf(prompt, piece.index)];
  choice.text += piece.text;
  choice.reasoning += piece.reasoning;
  for (ToolCallDelta& part : piece.tool_calls) {
    if (part.index == choice.tool_calls.size()) {
      choice.tool_calls.push_back(std::move(part));
    } else {
      choice.tool_calls[part.index].arguments += part.arguments;
    }
  }
  choice.token_ids.insert(choice.token_ids.end(), piece.token_ids.begin(),
                          piece.token_ids.end());
  std::move(piece.logprobs.begin(), piece.logprobs.end(),
            std::back_inserter(choice.logprobs));
  if (piece.finish.has_value()) choice.finish = *std::move(piece.finish);
}

Json WholeAnswer::MessageJson(Choice choice) const {
  Json message = {{"role", "assistant"}, {"content", std::move(choice.text)}};
  const bool says_nothing = message["content"].get_ref<std::string&>().empty();
  const bool has_more = !choice.reasoning.empty() || !choice.tool_calls.empty();
  if (says_nothing && has_more) message["content"] = nullptr;
  message["refusal"] = nullptr;
  if (!choice.reasoning.empty()) {
    message["reasoning"] = choice.reasoning;
    message["reasoning_content"] = std::move(choice.reasoning);
  }
  for (const ToolCallDelta& call : choice.tool_calls) {
    AddCall(style_, call, &message);
  }
  return message;
}

Json WholeAnswer::ChoiceJson(size_t prompt_index, uint32_t index) {
  const size_t number = ChoiceOf(prompt_index, index);
  Choice& choice = choices_[number];
  const PieceMaker& prompt = this->prompt(prompt_index);
  Json json = {{"index", number}};
  if (style_.endpoint == kChat) {
    json["message"] = MessageJson(choice);
  } else {
    json["text"] = std::move(choice.text);
  }
  json["logprobs"] =
      style_.logprobs
          ? LogprobsWriter(&style_, tokenizer_).Write(choice.logprobs)
          : Json();
  json["finish_reason"] = FinishReasonName(style_, choice.finish);
  json["stop_reason"] = StopReason(style_, choice.finish);
  if (style_.return_token_ids) json["token_ids"] = choice.token_ids;
  if (style_.endpoint == kCompletions) {
    if (style_.return_token_ids) {
      json["prompt_token_ids"] = prompt.accepted().prompt_token_ids;
    }
    if (style_.prompt_logprobs) {
      json["prompt_logprobs"] = PromptLogprobs(prompt.prompt_logprobs());
    }
  }
  return json;
}

void WholeAnswer::Complete() {
  Json json = Envelope(style_);
  Json choices = Json::array();
  for (size_t i = 0; i < num_prompts(); ++i) {
    for (uint32_t k = 0; k < style_.n; ++k) {
      choices.push_back(ChoiceJson(i, k));
    }
  }
  json["choices"] = std::move(choices);
  json["usage"] = UsageJson(usage_);
  if (style_.endpoint == kChat) {
    if (style_.return_token_ids) {
      json["prompt_token_ids"] = prompt(0).accepted().prompt_token_ids;
    }
    if (style_.prompt_logprobs) {
      json["prompt_logprobs"] = PromptLogprobs(prompt(0).prompt_logprobs());
    }
  }
  http::Fields fields = {{"content-type", "application/json"}};
  if (failovers_ > 0) {
    fields.emplace_back("x-lockstep-failovers", absl::StrCat(failovers_));
  }
  writer_->Send({200, std::move(fields), Dump(json)});
}

void WholeAnswer::Fail(const absl::Status& status) {
  writer_->Send(ErrorResponse(status));
}

}  // namespace lockstep::openai
