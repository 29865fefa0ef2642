#include "frontend/openai/streamed_answer.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "frontend/openai/error_response.h"

namespace lockstep::openai {
namespace {

using http::ResponseWriter;

constexpr char kKeepAlive[] = ": keep-alive\n\n";

http::Response StreamHead() {
  return {200,
          {{"content-type", "text/event-stream; charset=utf-8"},
           {"cache-control", "no-cache"},
           // nginx would else hold events back.
           {"x-accel-buffering", "no"}},
          ""};
}

std::string OpenEnvelope(const AnswerStyle& style) {
  std::string envelope = Dump(Envelope(style));
  envelope.pop_back();
  return envelope + ",\"choices\":[";
}

}  // namespace

StreamedAnswer::StreamedAnswer(AnswerStyle style, size_t prompts,
                               const Tokenizer* tokenizer,
                               std::shared_ptr<ResponseWriter> writer)
    : AnswerWriter(std::move(style), prompts, tokenizer, std::move(writer)),
      envelope_(OpenEnvelope(style_)),
      choices_(prompts * style_.n, Choice{LogprobsWriter(&style_, tokenizer)}) {
}

void StreamedAnswer::Begin() {
  has_begun_ = true;
  writer_->StartStream(StreamHead(), kKeepAlive);
}

void StreamedAnswer::Show(size_t prompt, Piece piece) {
  const size_t index = ChoiceOf(prompt, piece.index);
  Choice& choice = choices_[index];
  if (!choice.begun && style_.endpoint == kChat) OpenChat(prompt, index);
  if (style_.endpoint == kChat) {
    for (Json& delta : ChatDeltas(piece)) {
      Write(
          Dump(ChoiceJson(prompt, &choice, "delta", std::move(delta), &piece)));
    }
  } else if (!piece.text.empty() || piece.finish.has_value() ||
             HasTokens(piece)) {
    Write(Dump(
        ChoiceJson(prompt, &choice, "text", std::move(piece.text), &piece)));
  }
  choice.begun = true;
}

bool StreamedAnswer::HasTokens(const Piece& piece) const {
  return (style_.logprobs && !piece.logprobs.empty()) ||
         (style_.return_token_ids && !piece.token_ids.empty());
}

std::vector<Json> StreamedAnswer::ChatDeltas(const Piece& piece) const {
  std::vector<Json> deltas;
  if (!piece.reasoning.empty()) {
    deltas.push_back({{"reasoning", piece.reasoning},
                      {"reasoning_content", piece.reasoning}});
  }
  if (!piece.text.empty()) deltas.push_back({{"content", piece.text}});
  const auto add_call = [&](ToolCallDelta part) {
    AddCall(style_, part, &deltas.emplace_back());
  };
  for (const ToolCallDelta& part : piece.tool_calls) {
    if (!part.id.empty()) add_call({part.index, part.id, part.name, ""});
    if (!part.arguments.empty()) {
      add_call({part.index, "", "", part.arguments});
    }
  }
  if (!deltas.empty()) return deltas;
  if (piece.finish.has_value()) return {Json::object()};
  if (HasTokens(piece)) deltas.push_back({{"content", ""}});
  return deltas;
}

void StreamedAnswer::OpenChat(size_t prompt_index, size_t index) {
  const Json json = {{"index", index},
                     {"delta", {{"role", "assistant"}, {"content", ""}}},
                     {"logprobs", nullptr},
                     {"finish_reason", nullptr}};
  std::string further;
  if (style_.return_token_ids && index == 0) {
    further = absl::StrCat(
        ",\"prompt_token_ids\":",
        Dump(Json(prompt(prompt_index).accepted().prompt_token_ids)));
  }
  Write(Dump(json), further);
}

Json StreamedAnswer::ChoiceJson(size_t prompt_index, Choice* choice,
                                const char* shown, Json value, Piece* piece) {
  Json json = {{"index", ChoiceOf(prompt_index, piece->index)}};
  json[shown] = std::move(value);
  const auto logprobs = std::exchange(piece->logprobs, {});
  json["logprobs"] = style_.logprobs && !logprobs.empty()
                         ? choice->logprobs.Write(logprobs)
                         : Json();
  json["finish_reason"] = nullptr;
  if (piece->finish.has_value()) {
    json["finish_reason"] = FinishReasonName(style_, *piece->finish);
    json["stop_reason"] = StopReason(style_, *piece->finish);
  }
  if (style_.return_token_ids) {
    json["token_ids"] = std::exchange(piece->token_ids, {});
    if (style_.endpoint == kCompletions && !choice->begun) {
      json["prompt_token_ids"] =
          prompt(prompt_index).accepted().prompt_token_ids;
    }
  }
  return json;
}

void StreamedAnswer::Write(const std::string& choices,
                           const std::string& further) {
  std::string usage;
  if (style_.continuous_usage_stats) {
    usage = absl::StrCat(",\"usage\":", Dump(UsageJson(usage_)));
  } else if (style_.include_usage) {
    usage = ",\"usage\":null";
  }
  WriteEvent(absl::StrCat(envelope_, choices, "]", further, usage, "}"));
}

void StreamedAnswer::WriteEvent(const std::string& data) {
  writer_->Write(absl::StrCat("data: ", data, "\n\n"));
}

void StreamedAnswer::Complete() {
  if (style_.include_usage) {
    WriteEvent(
        absl::StrCat(envelope_, "],\"usage\":", Dump(UsageJson(usage_)), "}"));
  }
  // A comment: the head of the answer has gone long since.
  if (failovers_ > 0) {
    writer_->Write(absl::StrCat(": failovers=", failovers_, "\n\n"));
  }
  WriteEvent("[DONE]");
  writer_->End(ResponseWriter::After::kKeepConnection);
}

void StreamedAnswer::Fail(const absl::Status& status) {
  if (!has_begun_) return writer_->Send(ErrorResponse(status));
  WriteEvent(ErrorJson(status));
  writer_->End(ResponseWriter::After::kCloseConnection);
}

}  // namespace lockstep::openai
