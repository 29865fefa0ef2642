#include "frontend/chat/terminal.h"

#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace lockstep {
namespace {

constexpr char kPrompt[] = "> ";

sigset_t InterruptSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  return signals;
}

// Waits until one of the two can be read; returns which, the first by
// preference.
int AwaitEither(int first, int second) {
  pollfd fds[2] = {{first, POLLIN, 0}, {second, POLLIN, 0}};
  while (poll(fds, 2, -1) <= 0) continue;
  return fds[0].revents != 0 ? first : second;
}

void TakeInterrupt(int fd) {
  signalfd_siginfo info;
  [[maybe_unused]] const ssize_t size = read(fd, &info, sizeof(info));
}

bool WantsColor() {
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) && std::getenv("NO_COLOR") == nullptr &&
         terminal != nullptr && absl::string_view(terminal) != "dumb";
}

}  // namespace

Terminal::Terminal()
    : is_interactive_(isatty(STDIN_FILENO) && isatty(STDOUT_FILENO)),
      has_color_(WantsColor()) {
  const sigset_t signals = InterruptSignal();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  interrupt_fd_ = signalfd(-1, &signals, SFD_CLOEXEC);
}

Terminal::~Terminal() { close(interrupt_fd_); }

Terminal::Event Terminal::ReadLine(std::string* line) {
  if (is_interactive_) {
    Write(has_color_ ? "\033[1m> \033[0m" : kPrompt);
  }
  while (!TakeLine(line)) {
    if (has_ended_) return Event::kEnd;
    if (AwaitEither(interrupt_fd_, STDIN_FILENO) == interrupt_fd_) {
      TakeInterrupt(interrupt_fd_);
      return Event::kInterrupt;
    }
    char buffer[4096];
    const ssize_t size = read(STDIN_FILENO, buffer, sizeof(buffer));
    if (size > 0) {
      pending_.append(buffer, size);
    } else {
      has_ended_ = true;
    }
  }
  return Event::kLine;
}

bool Terminal::TakeLine(std::string* line) {
  const size_t end = pending_.find('\n');
  if (end != std::string::npos) {
    *line = pending_.substr(0, end);
    pending_.erase(0, end + 1);
    return true;
  }
  // The last line of a file may lack its end.
  if (!has_ended_ || pending_.empty()) return false;
  *line = std::exchange(pending_, "");
  return true;
}

void Terminal::Write(absl::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void Terminal::WriteDim(absl::string_view text) {
  if (!is_interactive_) return WriteError(text);
  std::fprintf(stdout, has_color_ ? "\033[2m%.*s\033[0m\n" : "%.*s\n",
               static_cast<int>(text.size()), text.data());
  std::fflush(stdout);
}

void Terminal::WriteError(absl::string_view text) {
  std::fprintf(stderr, "%.*s\n", static_cast<int>(text.size()), text.data());
}

Terminal::InterruptWatch::InterruptWatch(const Terminal& terminal,
                                         std::function<void()> on_interrupt)
    : stop_fd_(eventfd(0, EFD_CLOEXEC)) {
  thread_ = std::thread([stop_fd = stop_fd_, fd = terminal.interrupt_fd_,
                         on_interrupt = std::move(on_interrupt)] {
    while (AwaitEither(stop_fd, fd) == fd) {
      TakeInterrupt(fd);
      on_interrupt();
    }
  });
  pthread_setname_np(thread_.native_handle(), "interrupt");
}

Terminal::InterruptWatch::~InterruptWatch() {
  const uint64_t one = 1;
  [[maybe_unused]] const ssize_t size = write(stop_fd_, &one, sizeof(one));
  thread_.join();
  close(stop_fd_);
}

}  // namespace lockstep
