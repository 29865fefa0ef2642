#include "worker/runtime/termination_signals.h"

#include <glog/logging.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>

#include <utility>

namespace lockstep {

using boost::system::error_code;

TerminationSignals::TerminationSignals(Options options)
    : options_(std::move(options)),
      signals_(context_, SIGTERM, SIGINT),
      grace_(context_) {
  AwaitFirst();
  thread_ = std::thread([this] { context_.run(); });
  pthread_setname_np(thread_.native_handle(), "signals");
}

TerminationSignals::~TerminationSignals() {
  context_.stop();
  thread_.join();
}

void TerminationSignals::AwaitFirst() {
  signals_.async_wait([this](const error_code& error, int signal) {
    if (error) return;
    LOG(INFO) << "got signal " << signal << " (" << strsignal(signal) << ")";
    AwaitSecondOrGrace();
    options_.begin();
  });
}

void TerminationSignals::AwaitSecondOrGrace() {
  grace_.expires_after(absl::ToChronoNanoseconds(options_.grace));
  grace_.async_wait([this](const error_code& error) {
    if (error) return;
    LOG(WARNING) << "the grace of " << options_.grace << " has passed";
    signals_.cancel();
    options_.hurry();
  });
  signals_.async_wait([this](const error_code& error, int signal) {
    if (error) return;
    LOG(WARNING) << "got signal " << signal << " again";
    grace_.cancel();
    options_.hurry();
  });
}

void IgnoreTerminationSignals() {
  signal(SIGTERM, SIG_IGN);
  signal(SIGINT, SIG_IGN);
}

}  // namespace lockstep
