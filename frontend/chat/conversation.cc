#include "frontend/chat/conversation.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>

#include <utility>

namespace lockstep {
namespace {

constexpr char kHelp[] =
    "/reset  starts a new conversation\n"
    "/help   shows this\n"
    "/exit   leaves; so does Ctrl-D\n"
    "Ctrl-C  ends the answer that is being written\n"
    "A line that begins with // is sent with one slash.";

v1::ChatMessage Message(absl::string_view role, absl::string_view content) {
  v1::ChatMessage message;
  message.set_role(std::string(role));
  message.set_content(std::string(content));
  return message;
}

}  // namespace

Conversation::Conversation(std::string system) : system_(std::move(system)) {
  Reset();
}

void Conversation::Reset() {
  messages_.clear();
  if (!system_.empty()) messages_.push_back(Message("system", system_));
}

Conversation::Reaction Conversation::OnLine(absl::string_view line) {
  line = absl::StripAsciiWhitespace(line);
  if (line.empty()) return {};
  if (absl::StartsWith(line, "/") && !absl::StartsWith(line, "//")) {
    return OnCommand(line);
  }
  if (line.front() == '/') line.remove_prefix(1);
  messages_.push_back(Message("user", line));
  return {Action::kAsk, ""};
}

Conversation::Reaction Conversation::OnCommand(absl::string_view command) {
  if (command == "/help") return {Action::kShow, kHelp};
  if (command == "/exit") return {Action::kLeave, ""};
  if (command == "/reset") {
    Reset();
    return {Action::kShow, "A new conversation."};
  }
  return {Action::kRefuse,
          absl::StrCat("There is no command ", command, "; /help lists them.")};
}

v1::ChatPrompt Conversation::prompt() const {
  v1::ChatPrompt prompt;
  prompt.mutable_messages()->Add(messages_.begin(), messages_.end());
  return prompt;
}

void Conversation::OnAnswer(const std::string& text) {
  if (text.empty()) {
    messages_.pop_back();
  } else {
    messages_.push_back(Message("assistant", text));
  }
}

}  // namespace lockstep
