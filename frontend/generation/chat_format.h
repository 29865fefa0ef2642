#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <vector>

#include "frontend/generation/spec.h"
#include "frontend/output_parsing/output_format.h"
#include "frontend/structured_output/tool_grammar.h"
#include "tokenizer_service/tokenizer.h"

namespace lockstep {

// How the model that is served chats, found out once.
struct ChatFormat {
  OutputFormat output;
  // The special tokens among the marks of `output`: a parser must see them,
  // whatever is skipped.
  std::vector<uint32_t> mark_ids = {};
  // How it is made to write calls.
  CallDialect calls = {};
  // Whether the chat template wants the arguments of earlier calls as a text,
  // as DeepSeek's do, not as an object.
  bool arguments_are_text = false;
  // Whether it wants the content of a message that has calls and no words as an
  // empty text, as Qwen's do, not as none.
  bool no_content_is_empty = false;
};

// Looks through the vocabulary, and has the template render a chat or two.
ChatFormat MakeChatFormat(const OutputFormat& output,
                          const Tokenizer& tokenizer);

// INVALID_ARGUMENT for a chat with tools where it is not known how the model
// calls them.
absl::Status CheckTools(const PromptSpec& prompt, const ChatFormat& format);

}  // namespace lockstep
