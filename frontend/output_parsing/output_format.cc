#include "frontend/output_parsing/output_format.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <absl/types/span.h>
#include <glog/logging.h>

#include "frontend/output_parsing/marks.h"

namespace lockstep {
namespace {

template <typename Format>
struct Name {
  const char* name;
  Format format;
};

constexpr Name<ToolFormat> kToolNames[] = {
    {"none", ToolFormat::kNone},
    {"hermes", ToolFormat::kHermes},
    {"llama3_json", ToolFormat::kLlama3Json},
    {"pythonic", ToolFormat::kPythonic},
    {"mistral", ToolFormat::kMistral},
    {"deepseek", ToolFormat::kDeepSeek},
    {"harmony", ToolFormat::kHarmony},
};

constexpr Name<ReasoningFormat> kReasoningNames[] = {
    {"none", ReasoningFormat::kNone},
    {"think", ReasoningFormat::kThink},
    {"think_first", ReasoningFormat::kThinkFirst},
    {"mistral", ReasoningFormat::kMistral},
    {"harmony", ReasoningFormat::kHarmony},
};

// What a chat template writes if its model writes that format; the first row
// that fits counts.
template <typename Format>
struct Sign {
  absl::string_view text;
  Format format;
};

constexpr Sign<ToolFormat> kToolSigns[] = {
    {"<|channel|>", ToolFormat::kHarmony},
    {"<｜tool▁calls▁begin｜>", ToolFormat::kDeepSeek},
    {"[TOOL_CALLS]", ToolFormat::kMistral},
    {"<|python_start|>", ToolFormat::kPythonic},
    {"<|python_tag|>", ToolFormat::kLlama3Json},
    // Calls within <tool_call> that are no JSON: Qwen3-Coder, GLM-4.5.
    {"<function=", ToolFormat::kNone},
    {"<arg_key>", ToolFormat::kNone},
    {"<tool_call>", ToolFormat::kHermes},
};

constexpr Sign<ReasoningFormat> kReasoningSigns[] = {
    {"<|channel|>", ReasoningFormat::kHarmony},
    {"[THINK]", ReasoningFormat::kMistral},
    {"<think>", ReasoningFormat::kThink},
    {"</think>", ReasoningFormat::kThink},
};

template <typename Format>
std::string Names(absl::Span<const Name<Format>> names) {
  std::string list = "auto";
  for (const auto& row : names) absl::StrAppend(&list, ", ", row.name);
  return list;
}

template <typename Format>
const char* NameOf(absl::Span<const Name<Format>> names, Format format) {
  for (const auto& row : names) {
    if (row.format == format) return row.name;
  }
  return "";
}

template <typename Format>
absl::StatusOr<Format> Choose(const char* flag, const std::string& value,
                              absl::Span<const Name<Format>> names,
                              absl::Span<const Sign<Format>> signs,
                              absl::string_view chat_template) {
  if (value == "auto") {
    for (const auto& row : signs) {
      if (absl::StrContains(chat_template, row.text)) return row.format;
    }
    return Format::kNone;
  }
  for (const auto& row : names) {
    if (value == row.name) return row.format;
  }
  return absl::InvalidArgumentError(absl::StrCat("--", flag, " is \"", value,
                                                 "\"; it must be one of ",
                                                 Names(names), "."));
}

bool HasMarks(ReasoningFormat format) {
  return format != ReasoningFormat::kNone &&
         format != ReasoningFormat::kHarmony;
}

}  // namespace

std::string OutputFormat::ToString() const {
  return absl::StrCat(
      "tool calls ", NameOf(absl::MakeConstSpan(kToolNames), tools),
      ", reasoning ", NameOf(absl::MakeConstSpan(kReasoningNames), reasoning));
}

std::string ToolFormatNames() { return Names(absl::MakeConstSpan(kToolNames)); }

std::string ReasoningFormatNames() {
  return Names(absl::MakeConstSpan(kReasoningNames));
}

absl::StatusOr<OutputFormat> ChooseOutputFormat(
    const std::string& tool_call_parser, const std::string& reasoning_parser,
    absl::string_view chat_template) {
  const auto tools = Choose("tool_call_parser", tool_call_parser,
                            absl::MakeConstSpan(kToolNames),
                            absl::MakeConstSpan(kToolSigns), chat_template);
  if (!tools.ok()) return tools.status();
  const auto reasoning =
      Choose("reasoning_parser", reasoning_parser,
             absl::MakeConstSpan(kReasoningNames),
             absl::MakeConstSpan(kReasoningSigns), chat_template);
  if (!reasoning.ok()) return reasoning.status();
  const OutputFormat format = {*tools, *reasoning};
  if ((format.tools == ToolFormat::kHarmony) !=
      (format.reasoning == ReasoningFormat::kHarmony)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--tool_call_parser and --reasoning_parser come to ",
                     format.ToString(), "; harmony is for both or neither."));
  }
  return format;
}

ReasoningMarks MarksOf(ReasoningFormat format) {
  switch (format) {
    case ReasoningFormat::kThink:
    case ReasoningFormat::kThinkFirst:
      return {"<think>", "</think>"};
    case ReasoningFormat::kMistral:
      return {"[THINK]", "[/THINK]"};
    case ReasoningFormat::kNone:
    case ReasoningFormat::kHarmony:
      break;
  }
  LOG(FATAL) << "the format has no marks around its reasoning";
}

std::vector<absl::string_view> MarksOf(const OutputFormat& format) {
  std::vector<absl::string_view> marks;
  switch (format.tools) {
    case ToolFormat::kNone:
      break;
    case ToolFormat::kHermes:
      marks = {"<tool_call>", "</tool_call>"};
      break;
    case ToolFormat::kLlama3Json:
      marks = {"<|python_tag|>"};
      break;
    case ToolFormat::kPythonic:
      marks = {"<|python_start|>", "<|python_end|>"};
      break;
    case ToolFormat::kMistral:
      marks = {"[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"};
      break;
    case ToolFormat::kDeepSeek:
      marks = {"<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>",
               "<｜tool▁call▁begin｜>", "<｜tool▁call▁end｜>",
               "<｜tool▁sep｜>"};
      break;
    case ToolFormat::kHarmony:
      return {"<|start|>", "<|channel|>", "<|constrain|>", "<|message|>",
              "<|end|>",   "<|call|>",    "<|return|>"};
  }
  if (HasMarks(format.reasoning)) {
    const ReasoningMarks around = MarksOf(format.reasoning);
    marks.push_back(around.open);
    marks.push_back(around.close);
  }
  return marks;
}

bool StartsInReasoning(ReasoningFormat format, absl::string_view prompt) {
  if (!HasMarks(format)) return false;
  const ReasoningMarks marks = MarksOf(format);
  const auto ends_with = [prompt](absl::string_view mark) {
    const size_t at = prompt.rfind(mark);
    return at != absl::string_view::npos &&
           SkipSpace(prompt, at + mark.size()) == prompt.size();
  };
  if (ends_with(marks.open)) return true;
  return format == ReasoningFormat::kThinkFirst && !ends_with(marks.close);
}

bool LeavesReasoningOpen(ReasoningFormat format, absl::string_view message) {
  if (!HasMarks(format)) return false;
  const ReasoningMarks marks = MarksOf(format);
  const size_t open = message.rfind(marks.open);
  return open != absl::string_view::npos &&
         message.find(marks.close, open) == absl::string_view::npos;
}

}  // namespace lockstep
