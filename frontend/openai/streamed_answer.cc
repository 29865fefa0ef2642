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
  const bool has_news = !piece.text.empty() || piece.finish.has_value() ||
                        (style_.logprobs && !piece.logprobs.empty()) ||
                        (style_.return_token_ids && !piece.token_ids.empty());
  if (has_news) Write(Dump(ChoiceJson(prompt, &choice, std::move(piece))));
  choice.begun = true;
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
                                Piece piece) {
  Json json = {{"index", ChoiceOf(prompt_index, piece.index)}};
  if (style_.endpoint != kChat) {
    json["text"] = std::move(piece.text);
  } else if (piece.text.empty() && piece.finish.has_value()) {
    json["delta"] = Json::object();
  } else {
    json["delta"] = {{"content", std::move(piece.text)}};
  }
  json["logprobs"] = style_.logprobs && !piece.logprobs.empty()
                         ? choice->logprobs.Write(piece.logprobs)
                         : Json();
  json["finish_reason"] = nullptr;
  if (piece.finish.has_value()) {
    json["finish_reason"] = FinishReasonName(piece.finish->reason);
    json["stop_reason"] = StopReason(style_, *piece.finish);
  }
  if (style_.return_token_ids) {
    json["token_ids"] = piece.token_ids;
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
  WriteEvent("[DONE]");
  writer_->End(ResponseWriter::After::kKeepConnection);
}

void StreamedAnswer::Fail(const absl::Status& status) {
  if (!has_begun_) return writer_->Send(ErrorResponse(status));
  WriteEvent(ErrorJson(status));
  writer_->End(ResponseWriter::After::kCloseConnection);
}

}  // namespace lockstep::openai
