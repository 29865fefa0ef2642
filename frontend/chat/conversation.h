#pragma once

#include <absl/strings/string_view.h>

#include <string>
#include <vector>

#include "proto/inference.pb.h"

namespace lockstep {

// What is said in a chat, without terminal or network: the history, and the
// commands that begin with a slash.
//
//   Conversation conversation("Be brief.");
//   Conversation::Reaction reaction = conversation.OnLine(line);
//   if (reaction.action == Conversation::Action::kAsk) {
//     … conversation.prompt() …
//     conversation.OnAnswer(text);
//   }
//
// Not thread-safe.
class Conversation {
 public:
  enum class Action {
    kNothing,  // an empty line
    kAsk,      // send prompt(), then call OnAnswer
    kShow,     // show the text to the user
    kRefuse,   // likewise, but it says what was wrong
    kLeave,
  };
  struct Reaction {
    Action action = Action::kNothing;
    std::string text;
  };

  // `system` is the first message, unless empty.
  explicit Conversation(std::string system);

  Reaction OnLine(absl::string_view line);

  // The messages so far, ending with what was just asked.
  v1::ChatPrompt prompt() const;

  // The answer to it, perhaps cut short. Without a text the question is
  // forgotten, so that it can be asked again.
  void OnAnswer(const std::string& text);

 private:
  Reaction OnCommand(absl::string_view command);
  void Reset();

  const std::string system_;
  std::vector<v1::ChatMessage> messages_;
};

}  // namespace lockstep
