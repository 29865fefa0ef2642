#pragma once

#include <absl/strings/string_view.h>

#include <functional>
#include <string>
#include <thread>

namespace lockstep {

// Standard input and output of a chat, with Ctrl-C as an event rather than the
// end of the program. Works on pipes and files too; then there is no prompt and
// no color.
//
//   Terminal terminal;  // first thing in main: blocks SIGINT, for threads too
//   std::string line;
//   while (terminal.ReadLine(&line) == Terminal::Event::kLine) …
//
// One thread, but for the callback of an InterruptWatch.
class Terminal {
 public:
  enum class Event { kLine, kInterrupt, kEnd };

  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  // A person is there: both input and output are terminals.
  bool is_interactive() const { return is_interactive_; }

  // Shows the prompt and waits for a line (without its end), for Ctrl-C or for
  // the end of the input.
  Event ReadLine(std::string* line);

  void Write(absl::string_view text);  // at once
  // A remark, on a line of its own; to standard error where the output is for a
  // program.
  void WriteDim(absl::string_view text);
  // To standard error, on a line of its own.
  void WriteError(absl::string_view text);

  // While it lives, Ctrl-C calls `on_interrupt`, on a thread of its own.
  class InterruptWatch {
   public:
    InterruptWatch(const Terminal& terminal,
                   std::function<void()> on_interrupt);
    ~InterruptWatch();
    InterruptWatch(const InterruptWatch&) = delete;
    InterruptWatch& operator=(const InterruptWatch&) = delete;

   private:
    int stop_fd_;
    std::thread thread_;  // "interrupt"; joined by the destructor
  };

 private:
  bool TakeLine(std::string* line);

  const bool is_interactive_;
  const bool has_color_;
  int interrupt_fd_;
  std::string pending_;  // read, but not yet taken as a line
  bool has_ended_ = false;
};

}  // namespace lockstep
