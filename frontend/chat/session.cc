#include "frontend/chat/session.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/str_format.h>

namespace lockstep {
namespace {

// "24 tokens, 57.3 tokens/s", the rate from the second token on.
std::string Speed(const ChatAnswer& answer) {
  const uint32_t tokens = answer.usage.completion_tokens();
  std::string text = absl::StrCat(tokens, tokens == 1 ? " token" : " tokens");
  const double seconds =
      (answer.timing.last_token_us() - answer.timing.first_token_us()) / 1e6;
  if (tokens > 1 && seconds > 0) {
    absl::StrAppendFormat(&text, ", %.1f tokens/s", (tokens - 1) / seconds);
  }
  return text;
}

}  // namespace

ChatSession::ChatSession(const ChatOptions& options, Terminal* terminal,
                         ChatClient* client)
    : options_(options),
      terminal_(terminal),
      client_(client),
      conversation_(options.system) {}

bool ChatSession::Run() {
  std::string line;
  bool was_interrupted = false;
  while (true) {
    const Terminal::Event event = terminal_->ReadLine(&line);
    if (event == Terminal::Event::kEnd) {
      if (!terminal_->is_interactive()) return all_answered_;
      terminal_->Write("\n");
      return true;
    }
    if (event == Terminal::Event::kInterrupt) {
      if (!terminal_->is_interactive()) return false;
      terminal_->Write("\n");
      if (was_interrupted) return true;
      was_interrupted = true;
      terminal_->WriteDim("Ctrl-C again, Ctrl-D or /exit leaves.");
      continue;
    }
    was_interrupted = false;
    const Conversation::Reaction reaction = conversation_.OnLine(line);
    switch (reaction.action) {
      case Conversation::Action::kNothing:
        break;
      case Conversation::Action::kAsk:
        if (!Ask()) return false;
        break;
      case Conversation::Action::kShow:
        terminal_->WriteDim(reaction.text);
        break;
      case Conversation::Action::kRefuse:
        terminal_->WriteError(reaction.text);
        break;
      case Conversation::Action::kLeave:
        return terminal_->is_interactive() || all_answered_;
    }
  }
}

bool ChatSession::Ask() {
  v1::GenerateRequest request;
  *request.mutable_chat() = conversation_.prompt();
  request.mutable_sampling()->set_temperature(options_.temperature);
  request.set_include_reasoning(terminal_->is_interactive());
  if (options_.max_tokens.has_value()) {
    request.mutable_sampling()->set_max_tokens(*options_.max_tokens);
  }
  ChatCall call;
  ChatAnswer answer;
  {
    const Terminal::InterruptWatch watch(*terminal_, [&] { call.Cancel(); });
    answer = client_->Ask(&call, request, [this](absl::string_view text) {
      terminal_->Write(text);
    });
  }
  if (!answer.text.empty()) terminal_->Write("\n");
  Remark(answer, call.is_cancelled());
  conversation_.OnAnswer(answer.text);
  return terminal_->is_interactive() || !call.is_cancelled();
}

void ChatSession::Remark(const ChatAnswer& answer, bool was_cancelled) {
  if (was_cancelled && !answer.status.ok()) {
    if (terminal_->is_interactive()) terminal_->WriteDim("(cut short)");
    return;
  }
  if (!answer.status.ok()) {
    terminal_->WriteError(answer.status.message());
    all_answered_ = false;
    return;
  }
  if (!terminal_->is_interactive()) return;
  terminal_->WriteDim(absl::StrCat(
      "(", Speed(answer),
      answer.reason == v1::LENGTH
          ? "; cut at --max_tokens or the end of the context, /reset starts "
            "anew"
          : "",
      ")"));
}

}  // namespace lockstep
