#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <map>
#include <memory>
#include <string>

#include "third_party/text/lockstep_text.h"

namespace lockstep {

// A model's chat template, compiled once and rendered as Hugging Face's
// transformers renders it.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(
//       auto chat_template,
//       ChatTemplate::Compile(source, {{"bos_token", "<s>"}}));
//   LOCKSTEP_ASSIGN_OR_RETURN(auto text, chat_template->Render(context_json));
//
// Immutable; any thread.
class ChatTemplate {
 public:
  // Every rendering has `variables`. INVALID_ARGUMENT says what is wrong with
  // the template, and on which of its lines.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Compile(
      absl::string_view source,
      const std::map<std::string, std::string>& variables);

  ~ChatTemplate();
  ChatTemplate(const ChatTemplate&) = delete;
  ChatTemplate& operator=(const ChatTemplate&) = delete;

  // As Tokenizer::RenderChat. A rendering that does not end is ended, after
  // some seconds, and what a template may keep in a namespace is limited
  // (third_party/text/src/storable.rs); both are INVALID_ARGUMENT.
  absl::StatusOr<std::string> Render(absl::string_view context_json) const;

 private:
  explicit ChatTemplate(LtTemplate* handle) : handle_(handle) {}

  LtTemplate* const handle_;  // owned
};

}  // namespace lockstep
