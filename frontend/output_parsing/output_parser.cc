#include "frontend/output_parsing/output_parser.h"

#include <optional>
#include <string>
#include <utility>

#include "frontend/output_parsing/harmony_parser.h"
#include "frontend/output_parsing/reasoning_splitter.h"

namespace lockstep {
namespace {

std::unique_ptr<ToolCallFormat> MakeToolCallFormat(ToolFormat format) {
  switch (format) {
    case ToolFormat::kHermes:
      return MakeHermesFormat();
    case ToolFormat::kLlama3Json:
      return MakeLlama3JsonFormat();
    case ToolFormat::kPythonic:
      return MakePythonicFormat();
    case ToolFormat::kMistral:
      return MakeMistralFormat();
    case ToolFormat::kDeepSeek:
      return MakeDeepSeekFormat();
    case ToolFormat::kNone:
    case ToolFormat::kHarmony:
      break;
  }
  return nullptr;
}

// Reasoning first, then calls in what follows; either may be absent.
class MarkedOutputParser : public OutputParser {
 public:
  MarkedOutputParser(std::optional<ReasoningSplitter> reasoning,
                     std::unique_ptr<ToolCallParser> calls)
      : reasoning_(std::move(reasoning)), calls_(std::move(calls)) {}

  void Add(absl::string_view text, OutputDelta* out) override {
    if (!reasoning_.has_value()) return AddRest(text, out);
    std::string rest;
    reasoning_->Add(text, &out->reasoning, &rest);
    AddRest(rest, out);
  }

  void Finish(OutputDelta* out) override {
    if (reasoning_.has_value()) {
      std::string rest;
      reasoning_->Finish(&out->reasoning, &rest);
      AddRest(rest, out);
    }
    if (calls_ != nullptr) calls_->Finish(out);
  }

  bool is_in_reasoning() const override {
    return reasoning_.has_value() && reasoning_->is_in_reasoning();
  }
  uint32_t num_begun_calls() const override {
    return calls_ == nullptr ? 0 : calls_->num_begun();
  }
  uint32_t num_whole_calls() const override {
    return calls_ == nullptr ? 0 : calls_->num_whole();
  }

 private:
  void AddRest(absl::string_view text, OutputDelta* out) {
    if (calls_ == nullptr) {
      out->content.append(text.data(), text.size());
    } else {
      calls_->Add(text, out);
    }
  }

  std::optional<ReasoningSplitter> reasoning_;
  const std::unique_ptr<ToolCallParser> calls_;
};

}  // namespace

std::unique_ptr<OutputParser> MakeOutputParser(const OutputFormat& format,
                                               OutputParserOptions options) {
  if (format.tools == ToolFormat::kHarmony ||
      format.reasoning == ReasoningFormat::kHarmony) {
    return std::make_unique<HarmonyParser>(options.has_tools,
                                           std::move(options.calls));
  }
  std::optional<ReasoningSplitter> reasoning;
  if (format.reasoning != ReasoningFormat::kNone) {
    reasoning.emplace(MarksOf(format.reasoning), options.starts_in_reasoning);
  }
  std::unique_ptr<ToolCallParser> calls;
  if (options.has_tools && format.tools != ToolFormat::kNone) {
    calls = std::make_unique<ToolCallParser>(MakeToolCallFormat(format.tools),
                                             std::move(options.calls));
  }
  if (!reasoning.has_value() && calls == nullptr) return nullptr;
  return std::make_unique<MarkedOutputParser>(std::move(reasoning),
                                              std::move(calls));
}

}  // namespace lockstep
