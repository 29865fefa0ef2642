#pragma once

#include <absl/strings/string_view.h>
#include <absl/types/span.h>

#include <cstddef>
#include <memory>

#include "frontend/output_parsing/call_object.h"

namespace lockstep {

// How the models of one family write tool calls. ToolCallParser drives one: it
// finds where calls may begin, gives the text from there on, again each time
// that more of it has come, and streams the arguments itself.
//
// One object for each choice. Not thread-safe.
class ToolCallFormat {
 public:
  enum class Place {
    kMark,       // the text begins with one of marks()
    kBare,       // it is the start of the answer and begins with bare_start()
    kAfterCall,  // it follows the arguments of a call
  };

  struct Reading {
    enum class Kind {
      kMore,  // undecided; `call.size` bytes belong to the call before
      kCall,  // `call` is what it says
      kEnd,   // no call follows; `call.size` bytes close those before
      kNone,  // at a mark, or bare: this is no call
    };
    Kind kind = Kind::kMore;
    CallHeader call = {};

    // Of what was scanned as a call's header.
    static Reading Of(Scan scan, CallHeader call);
    // Of `next`, read where another call may follow the `size` bytes of one.
    static Reading AfterCall(Reading next, size_t size);
    static Reading MoreAfter(size_t size) { return {Kind::kMore, {size}}; }
    static Reading EndAt(size_t size) { return {Kind::kEnd, {size}}; }
  };

  virtual ~ToolCallFormat() = default;

  // What calls begin with.
  virtual absl::Span<const absl::string_view> marks() const = 0;
  // What an answer can begin with that is a call without a mark; 0: nothing.
  virtual char bare_start() const { return '\0'; }

  // What is decided of a text must hold whatever follows it.
  virtual Reading Read(absl::string_view text, Place place) = 0;
};

// <tool_call>{"name": …, "arguments": {…}}</tool_call>: Hermes, Qwen 2.5 and 3
// (https://github.com/NousResearch/Hermes-Function-Calling, "Prompt Format").
std::unique_ptr<ToolCallFormat> MakeHermesFormat();

// {"name": …, "parameters": {…}}, several with ";" between them, as the whole
// answer or after <|python_tag|>: Llama 3.1 to 3.3 (Meta's model card, "JSON
// based tool calling").
std::unique_ptr<ToolCallFormat> MakeLlama3JsonFormat();

// [f(a=1), g(b="x")] as the whole answer, or between <|python_start|> and
// <|python_end|>: Llama 3.2 and 4 (Meta's model card, "Zero shot function
// calling").
std::unique_ptr<ToolCallFormat> MakePythonicFormat();

// [TOOL_CALLS][{"name": …, "arguments": {…}}], and since tokenizer version 11
// [TOOL_CALLS]NAME[CALL_ID]ID[ARGS]{…}, where the id may be left out
// (mistral_common, tokens/tokenizers/instruct.py).
std::unique_ptr<ToolCallFormat> MakeMistralFormat();

// The special tokens of DeepSeek V3 and R1, with a type before the name and the
// arguments in a fence, and those of V3.1, without both (their chat templates).
std::unique_ptr<ToolCallFormat> MakeDeepSeekFormat();

}  // namespace lockstep
