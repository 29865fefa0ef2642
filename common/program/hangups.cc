#include "common/program/hangups.h"

#include <signal.h>

#include <atomic>

namespace lockstep {
namespace {

std::atomic<int> hangups = 0;
static_assert(std::atomic<int>::is_always_lock_free);  // for the handler

}  // namespace

void CountHangups() {
  struct sigaction action = {};
  action.sa_handler = [](int /*signal*/) { hangups.fetch_add(1); };
  action.sa_flags = SA_RESTART;
  sigaction(SIGHUP, &action, nullptr);
}

int NumHangups() { return hangups.load(); }

}  // namespace lockstep
