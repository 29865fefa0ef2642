#include "frontend/http/io_thread.h"

#include <pthread.h>

#include <boost/asio/post.hpp>
#include <utility>

namespace lockstep::http {
namespace {

constexpr size_t kScratchBytes = 64 << 10;

}  // namespace

IoThread::IoThread(const std::string& name, SessionContext context,
                   std::atomic<int>* connections)
    : scratch_(kScratchBytes),
      context_(std::move(context)),
      connections_(connections) {
  context_.scratch = scratch_.data();
  context_.scratch_bytes = scratch_.size();
  thread_ = std::thread([this] { io_.run(); });
  pthread_setname_np(thread_.native_handle(), name.c_str());
}

IoThread::~IoThread() {
  if (!thread_.joinable()) return;
  Shutdown(absl::ZeroDuration());
  Join();
}

void IoThread::Join() { thread_.join(); }

void IoThread::Adopt(boost::asio::ip::tcp::socket socket) {
  // Shared, as a handler must be copyable.
  auto held = std::make_shared<boost::asio::ip::tcp::socket>(std::move(socket));
  boost::asio::post(io_, [this, held] {
    auto session = std::make_shared<Session>(std::move(*held), &context_,
                                             [this](Session* ended) {
                                               sessions_.erase(ended);
                                               connections_->fetch_sub(1);
                                               EndIfIdle();
                                             });
    sessions_.emplace(session.get(), session);
    session->Start();
    if (is_ending_) session->Drain();
  });
}

void IoThread::Drain() {
  boost::asio::post(io_, [this] {
    context_.draining = true;
    ForEach(&Session::Drain);
  });
}

void IoThread::Shutdown(absl::Duration grace) {
  Drain();
  boost::asio::post(io_, [this, grace] {
    is_ending_ = true;
    work_.reset();
    if (grace <= absl::ZeroDuration()) return ForEach(&Session::Close);
    grace_.expires_after(absl::ToChronoNanoseconds(grace));
    grace_.async_wait([this](const boost::system::error_code& cancelled) {
      if (!cancelled) ForEach(&Session::Close);
    });
    EndIfIdle();
  });
}

void IoThread::ForEach(void (Session::*what)()) {
  std::vector<std::shared_ptr<Session>> sessions;
  for (const auto& [key, session] : sessions_) sessions.push_back(session);
  for (const auto& session : sessions) (session.get()->*what)();
}

void IoThread::EndIfIdle() {
  if (is_ending_ && sessions_.empty()) grace_.cancel();
}

}  // namespace lockstep::http
