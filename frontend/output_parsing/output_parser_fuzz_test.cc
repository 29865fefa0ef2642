// What a model could write: whatever it is, and however it is cut, it is split
// into the same parts, calls are numbered and named, and nothing is made up.

#include <absl/strings/str_cat.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "frontend/output_parsing/output_parser.h"

namespace {

using lockstep::OutputDelta;
using lockstep::OutputFormat;
using lockstep::OutputParserOptions;
using lockstep::ReasoningFormat;
using lockstep::ToolCallDelta;
using lockstep::ToolFormat;

constexpr OutputFormat kFormats[] = {
    {ToolFormat::kHermes, ReasoningFormat::kThink},
    {ToolFormat::kLlama3Json, ReasoningFormat::kNone},
    {ToolFormat::kPythonic, ReasoningFormat::kNone},
    {ToolFormat::kMistral, ReasoningFormat::kMistral},
    {ToolFormat::kDeepSeek, ReasoningFormat::kThink},
    {ToolFormat::kHarmony, ReasoningFormat::kHarmony},
    {ToolFormat::kNone, ReasoningFormat::kThinkFirst},
};

void Require(bool holds) {
  if (!holds) std::abort();
}

struct Whole {
  std::string content, reasoning;
  std::vector<ToolCallDelta> calls;
  uint32_t num_whole = 0;
};

void Take(OutputDelta delta, Whole* whole) {
  whole->content += delta.content;
  whole->reasoning += delta.reasoning;
  for (ToolCallDelta& part : delta.tool_calls) {
    if (part.index == whole->calls.size()) {
      Require(!part.id.empty() && !part.name.empty());
      whole->calls.push_back(std::move(part));
    } else {
      Require(part.index + 1 == whole->calls.size());
      Require(part.id.empty() && part.name.empty() && !part.arguments.empty());
      whole->calls.back().arguments += part.arguments;
    }
  }
}

// `how`: the format in its low digits, then the options.
Whole Parse(absl::string_view text, uint8_t how, size_t piece) {
  OutputParserOptions options;
  options.has_tools = true;
  options.calls.names = {"f", "g"};
  options.calls.several = (how & 64) == 0;
  options.starts_in_reasoning = (how & 128) != 0;
  options.calls.make_id = [n = 0]() mutable { return absl::StrCat("id", n++); };
  const auto parser = MakeOutputParser(kFormats[(how & 63) % 7], options);
  Whole whole;
  for (size_t at = 0; at < text.size(); at += piece) {
    OutputDelta delta;
    parser->Add(text.substr(at, piece), &delta);
    Take(std::move(delta), &whole);
  }
  OutputDelta delta;
  parser->Finish(&delta);
  Take(std::move(delta), &whole);
  whole.num_whole = parser->num_whole_calls();
  Require(parser->num_begun_calls() == whole.calls.size());
  Require(whole.num_whole <= whole.calls.size());
  return whole;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const absl::string_view text(reinterpret_cast<const char*>(data + 2),
                               size - 2);
  const Whole one = Parse(text, data[0], text.size() + 1);
  const Whole other = Parse(text, data[0], 1 + data[1] % 16);
  Require(one.content == other.content && one.reasoning == other.reasoning);
  Require(one.calls.size() == other.calls.size());
  Require(one.num_whole == other.num_whole);
  for (size_t i = 0; i < one.calls.size(); ++i) {
    Require(one.calls[i].id == other.calls[i].id);
    Require(one.calls[i].name == other.calls[i].name);
    Require(one.calls[i].arguments == other.calls[i].arguments);
  }
  // Harmony's messages are lines of their own.
  Require(one.content.size() + one.reasoning.size() <= 2 * text.size());
  return 0;
}
