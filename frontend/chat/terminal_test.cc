#include "frontend/chat/terminal.h"

#include <absl/synchronization/notification.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>

namespace lockstep {
namespace {

using Event = Terminal::Event;

// A terminal whose standard input is a pipe that the test writes.
class TerminalTest : public testing::Test {
 protected:
  TerminalTest() : saved_stdin_(dup(STDIN_FILENO)) {
    int fds[2];
    EXPECT_EQ(pipe(fds), 0);
    dup2(fds[0], STDIN_FILENO);
    close(fds[0]);
    input_ = fds[1];
    terminal_ = std::make_unique<Terminal>();
  }
  ~TerminalTest() override {
    EndInput();
    dup2(saved_stdin_, STDIN_FILENO);
    close(saved_stdin_);
  }

  void Type(const std::string& text) {
    ASSERT_EQ(write(input_, text.data(), text.size()), text.size());
  }
  void EndInput() {
    if (input_ >= 0) close(input_);
    input_ = -1;
  }

  const int saved_stdin_;
  int input_ = -1;
  std::unique_ptr<Terminal> terminal_;
  std::string line_;
};

TEST_F(TerminalTest, ReadsLinesHoweverTheyArrive) {
  Type("one\ntwo\nth");
  EXPECT_FALSE(terminal_->is_interactive());
  EXPECT_EQ(terminal_->ReadLine(&line_), Event::kLine);
  EXPECT_EQ(line_, "one");
  EXPECT_EQ(terminal_->ReadLine(&line_), Event::kLine);
  EXPECT_EQ(line_, "two");
  Type("ree");
  EndInput();
  EXPECT_EQ(terminal_->ReadLine(&line_), Event::kLine);
  EXPECT_EQ(line_, "three");
  EXPECT_EQ(terminal_->ReadLine(&line_), Event::kEnd);
  EXPECT_EQ(terminal_->ReadLine(&line_), Event::kEnd);
}

TEST_F(TerminalTest, CtrlCIsAnEventAtThePrompt) {
  kill(getpid(), SIGINT);
  EXPECT_EQ(terminal_->ReadLine(&line_), Event::kInterrupt);
  Type("still here\n");
  EXPECT_EQ(terminal_->ReadLine(&line_), Event::kLine);
  EXPECT_EQ(line_, "still here");
}

TEST_F(TerminalTest, CtrlCIsACallWhileItIsWatched) {
  absl::Notification interrupted;
  {
    const Terminal::InterruptWatch watch(*terminal_,
                                         [&] { interrupted.Notify(); });
    kill(getpid(), SIGINT);
    interrupted.WaitForNotification();
  }
  Type("next\n");
  EXPECT_EQ(terminal_->ReadLine(&line_), Event::kLine);
}

TEST_F(TerminalTest, RemarksStayOutOfWhatAProgramReads) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  terminal_->Write("answer");
  terminal_->WriteDim("remark");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "answer");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "remark\n");
}

}  // namespace
}  // namespace lockstep
