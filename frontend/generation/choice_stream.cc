#include "frontend/generation/choice_stream.h"

#include <utility>

#include "common/request_id.h"
#include "common/status_macros.h"

namespace lockstep {
namespace {

// Mistral's templates take ids of nine letters and digits alone.
std::string MakeCallId(ToolFormat format) {
  constexpr size_t kMistralSize = 9;
  const std::string id = MakeRequestId("call");
  const std::string digits = id.substr(id.rfind('-') + 1);
  return format == ToolFormat::kMistral ? digits.substr(0, kMistralSize)
                                        : "call_" + digits;
}

absl::Span<const uint32_t> ShownIds(const ChatReading* reading) {
  if (reading == nullptr) return {};
  return reading->format->mark_ids;
}

}  // namespace

ChatReading MakeChatReading(const ChatFormat* format, const GenerateSpec& spec,
                            const ChatPrompt& chat,
                            absl::string_view rendered) {
  ChatReading reading;
  reading.format = format;
  reading.options.has_tools = !chat.tools.empty();
  for (const Tool& tool : chat.tools) {
    reading.options.calls.names.push_back(tool.name);
  }
  reading.options.calls.several = spec.parallel_tool_calls;
  reading.options.calls.make_id = [tools = format->output.tools] {
    return MakeCallId(tools);
  };
  const ReasoningFormat reasoning = format->output.reasoning;
  reading.options.starts_in_reasoning =
      chat.continue_final_message
          ? LeavesReasoningOpen(reasoning, chat.messages.back().content)
          : StartsInReasoning(reasoning, rendered);
  return reading;
}

ChoiceStream::ChoiceStream(const Tokenizer* tokenizer, const GenerateSpec& spec,
                           const ChatReading* reading)
    : text_(tokenizer, spec, ShownIds(reading)),
      parser_(reading == nullptr ? nullptr
                                 : MakeOutputParser(reading->format->output,
                                                    reading->options)),
      parallel_tool_calls_(spec.parallel_tool_calls) {}

absl::StatusOr<ChoiceStream::Piece> ChoiceStream::Add(
    absl::Span<const uint32_t> ids) {
  if (parser_ != nullptr) return AddParsed(ids);
  LOCKSTEP_ASSIGN_OR_RETURN(TextStream::Piece text, text_.Add(ids));
  Piece piece;
  piece.output.content = std::move(text.text);
  piece.num_tokens = text.num_tokens;
  return piece;
}

// One by one, since each counts as reasoning or not, and one may be the last.
absl::StatusOr<ChoiceStream::Piece> ChoiceStream::AddParsed(
    absl::Span<const uint32_t> ids) {
  Piece piece;
  while (piece.num_tokens < ids.size() && !has_ended()) {
    const bool was_in_reasoning = parser_->is_in_reasoning();
    LOCKSTEP_ASSIGN_OR_RETURN(const TextStream::Piece text,
                              text_.Add(ids.subspan(piece.num_tokens, 1)));
    parser_->Add(text.text, &piece.output);
    if (was_in_reasoning || parser_->is_in_reasoning()) {
      ++num_reasoning_tokens_;
    }
    ++piece.num_tokens;
  }
  return piece;
}

absl::StatusOr<OutputDelta> ChoiceStream::Finish() {
  OutputDelta output;
  LOCKSTEP_ASSIGN_OR_RETURN(std::string rest, text_.Finish());
  if (parser_ == nullptr) {
    output.content = std::move(rest);
  } else {
    parser_->Add(rest, &output);
    parser_->Finish(&output);
  }
  return output;
}

bool ChoiceStream::has_ended() const {
  if (stop_string().has_value()) return true;
  return parser_ != nullptr && !parallel_tool_calls_ &&
         parser_->num_whole_calls() > 0;
}

bool ChoiceStream::has_whole_calls() const {
  return parser_ != nullptr && parser_->num_begun_calls() > 0 &&
         parser_->num_whole_calls() == parser_->num_begun_calls();
}

}  // namespace lockstep
