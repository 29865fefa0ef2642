#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "frontend/generation/chat_format.h"
#include "frontend/generation/spec.h"
#include "frontend/generation/text_stream.h"
#include "frontend/output_parsing/output_parser.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// How the answer to a chat is read.
struct ChatReading {
  const ChatFormat* format = nullptr;
  OutputParserOptions options = {};
};

// What `rendered`, the prompt that `chat` became, says of it. `format` must
// outlive the result.
ChatReading MakeChatReading(const ChatFormat* format, const GenerateSpec& spec,
                            const ChatPrompt& chat, absl::string_view rendered);

// One choice of an answer: ids become text, up to a stop string, and the text
// of a chat becomes what is said, thought and called.
//
//   ChoiceStream stream(&tokenizer, spec, reading);
//   LOCKSTEP_ASSIGN_OR_RETURN(ChoiceStream::Piece piece, stream.Add(ids));
//   show(piece.output);                  // of the first piece.num_tokens ids
//   if (stream.has_ended()) stop_the_worker();
//
// Stop strings are looked for in the text as the model writes it, with the
// marks of calls and reasoning in it. Not thread-safe.
class ChoiceStream {
 public:
  struct Piece {
    OutputDelta output;
    // Ids that were used; fewer than given if the choice ended.
    size_t num_tokens = 0;
  };

  // `tokenizer` must outlive this. `reading`: null unless it is a chat.
  ChoiceStream(const Tokenizer* tokenizer, const GenerateSpec& spec,
               const ChatReading* reading);

  // Nothing is used once it has ended.
  absl::StatusOr<Piece> Add(absl::Span<const uint32_t> ids);

  // What was held back; no Add after it. It can hold a stop string.
  absl::StatusOr<OutputDelta> Finish();

  // By a stop string, or by the one call that was wanted.
  bool has_ended() const;
  const std::optional<std::string>& stop_string() const {
    return text_.stop_string();
  }
  uint32_t num_tokens() const { return text_.num_tokens(); }
  // From the one that opens reasoning to the one that closes it.
  uint32_t num_reasoning_tokens() const { return num_reasoning_tokens_; }
  // There are calls, and all are whole.
  bool has_whole_calls() const;

 private:
  absl::StatusOr<Piece> AddParsed(absl::Span<const uint32_t> ids);

  TextStream text_;
  std::unique_ptr<OutputParser> parser_;  // null: all of it is content
  const bool parallel_tool_calls_;
  uint32_t num_reasoning_tokens_ = 0;
};

}  // namespace lockstep
