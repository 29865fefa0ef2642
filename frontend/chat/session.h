#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "frontend/chat/chat_client.h"
#include "frontend/chat/conversation.h"
#include "frontend/chat/terminal.h"

namespace lockstep {

struct ChatOptions {
  std::string system;
  float temperature = 0;
  std::optional<uint32_t> max_tokens;  // the rest of the context if not set
};

// A chat from its first line to its last: lines from the terminal, answers from
// the client.
class ChatSession {
 public:
  // Both must outlive this.
  ChatSession(const ChatOptions& options, Terminal* terminal,
              ChatClient* client);

  // Returns when the user leaves or the input ends. False where nobody sees it
  // (no terminal) and a question got no answer.
  bool Run();

 private:
  // False: Ctrl-C, and nobody is there to go on.
  bool Ask();
  void Remark(const ChatAnswer& answer, bool was_cancelled);

  const ChatOptions options_;
  Terminal* const terminal_;
  ChatClient* const client_;
  Conversation conversation_;
  bool all_answered_ = true;
};

}  // namespace lockstep
