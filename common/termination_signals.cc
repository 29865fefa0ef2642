#include "common/termination_signals.h"

#include <glog/logging.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <boost/asio/post.hpp>
#include <utility>

namespace lockstep {

using boost::system::error_code;

namespace {

const char* volatile exiting_program = "";

// Runs in a signal handler: system calls only.
void ExitNow(int /*signal*/) {
  const auto say = [](const char* text) {
    const ssize_t ignored = write(STDERR_FILENO, text, strlen(text));
    static_cast<void>(ignored);
  };
  say(exiting_program);
  say(": ended by a signal before it served.\n");
  _exit(0);
}

}  // namespace

TerminationSignals::TerminationSignals(Options options)
    : options_(std::move(options)),
      signals_(context_, SIGTERM, SIGINT),
      grace_(context_) {
  signals_.async_wait([this](const error_code& error, int signal) {
    if (error) return;
    Log([signal] {
      LOG(INFO) << "got signal " << signal << " (" << strsignal(signal) << ")";
    });
    OnFirst();
  });
  thread_ = std::thread([this] { context_.run(); });
  pthread_setname_np(thread_.native_handle(), "signals");
  log_thread_ = std::thread([this] { log_.run(); });
  pthread_setname_np(log_thread_.native_handle(), "signal-log");
}

TerminationSignals::~TerminationSignals() {
  context_.stop();
  thread_.join();
  more_to_log_.reset();
  log_thread_.join();
}

void TerminationSignals::OnFirst() {
  error_code ignored;
  if (!options_.hurry) {
    signals_.clear(ignored);  // the system's own handling is back
  } else {
    signals_.async_wait([this](const error_code& error, int signal) {
      if (error) return;
      Log([signal] { LOG(WARNING) << "got signal " << signal << " again"; });
      Hurry();
    });
  }
  if (options_.hurry && options_.grace < absl::InfiniteDuration()) {
    grace_.expires_after(absl::ToChronoNanoseconds(options_.grace));
    grace_.async_wait([this](const error_code& error) {
      if (error) return;
      Log([grace = options_.grace] {
        LOG(WARNING) << "the grace of " << grace << " has passed";
      });
      Hurry();
    });
  }
  BeginOnce();
}

void TerminationSignals::Begin() {
  boost::asio::post(context_, [this] { BeginOnce(); });
}

void TerminationSignals::BeginOnce() {
  if (first_.HasBeenNotified()) return;
  first_.Notify();
  if (options_.begin) options_.begin();
  if (options_.log) Log(options_.log);
}

// The second signal and the end of the grace can come at the same time.
void TerminationSignals::Hurry() {
  if (!std::exchange(has_hurried_, true)) options_.hurry();
}

void TerminationSignals::Log(std::function<void()> log) {
  boost::asio::post(log_, std::move(log));
}

void ExitAtTermination(const char* program) {
  exiting_program = program;
  signal(SIGTERM, ExitNow);
  signal(SIGINT, ExitNow);
}

void IgnoreTerminationSignals() {
  signal(SIGTERM, SIG_IGN);
  signal(SIGINT, SIG_IGN);
}

}  // namespace lockstep
