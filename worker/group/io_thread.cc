#include "worker/group/io_thread.h"

#include <pthread.h>

namespace lockstep {

void IoThread::Start() {
  context_.restart();
  work_.emplace(context_.get_executor());
  thread_ = std::thread([this] { context_.run(); });
  pthread_setname_np(thread_.native_handle(), "group-io");
}

void IoThread::Stop() {
  context_.stop();
  if (thread_.joinable()) thread_.join();
}

}  // namespace lockstep
