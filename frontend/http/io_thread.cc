#include "frontend/http/io_thread.h"

#include <pthread.h>

#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include "frontend/http/plain_stream.h"
#include "frontend/http/tls_stream.h"

namespace lockstep::http {
namespace {

using boost::asio::ip::tcp;
using Error = boost::system::error_code;

constexpr size_t kScratchBytes = 64 << 10;
constexpr std::chrono::milliseconds kMeasureLagEvery{100};
// What a client does not read waits in our buffer, where it is counted.
constexpr int kSendBufferBytes = 256 << 10;

Error SetOptions(tcp::socket* socket) {
  Error failure;
  socket->non_blocking(true, failure);
  if (!failure) socket->set_option(tcp::no_delay(true), failure);
  if (!failure) {
    socket->set_option(
        boost::asio::socket_base::send_buffer_size(kSendBufferBytes), failure);
  }
  return failure;
}

std::string AddressOf(const tcp::socket& socket) {
  Error gone;
  return socket.remote_endpoint(gone).address().to_string();
}

}  // namespace

IoThread::IoThread(const std::string& name, SessionContext context,
                   TlsContexts* tls)
    : scratch_(kScratchBytes), context_(std::move(context)), tls_(tls) {
  context_.scratch = scratch_.data();
  context_.scratch_bytes = scratch_.size();
  MeasureLag();
  thread_ = std::thread([this] { io_.run(); });
  pthread_setname_np(thread_.native_handle(), name.c_str());
}

IoThread::~IoThread() {
  if (!thread_.joinable()) return;
  Shutdown(absl::ZeroDuration());
  Join();
}

void IoThread::Join() { thread_.join(); }

void IoThread::Adopt(tcp::socket socket, ConnectionLimits::Place place) {
  boost::asio::post(io_, [this, socket = std::move(socket),
                          place = std::move(place)]() mutable {
    Begin(std::move(socket), std::move(place));
  });
}

void IoThread::Begin(tcp::socket socket, ConnectionLimits::Place place) {
  if (SetOptions(&socket)) return;
  std::string client = AddressOf(socket);
  auto stream = tls_ == nullptr
                    ? MakePlainStream(std::move(socket))
                    : MakeTlsStream(std::move(socket), tls_->Current().get());
  auto session = std::make_shared<Session>(std::move(stream), std::move(client),
                                           &context_, [this](Session* ended) {
                                             connections_.erase(ended);
                                             EndIfIdle();
                                           });
  connections_.emplace(session.get(), Connection{session, std::move(place)});
  session->Start();
  if (is_ending_) session->End();
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
    canary_.cancel();
    if (grace <= absl::ZeroDuration()) return ForEach(&Session::Close);
    grace_.expires_after(absl::ToChronoNanoseconds(grace));
    grace_.async_wait([this](const boost::system::error_code& cancelled) {
      if (!cancelled) ForEach(&Session::Close);
    });
    ForEach(&Session::End);
    EndIfIdle();
  });
}

void IoThread::MeasureLag() {
  canary_.expires_after(kMeasureLagEvery);
  canary_.async_wait([this](const boost::system::error_code& cancelled) {
    if (cancelled || is_ending_) return;
    lag_.Observe(std::chrono::steady_clock::now() - canary_.expiry());
    MeasureLag();
  });
}

void IoThread::ForEach(void (Session::*what)()) {
  std::vector<std::shared_ptr<Session>> sessions;
  for (const auto& [key, connection] : connections_) {
    sessions.push_back(connection.session);
  }
  for (const auto& session : sessions) (session.get()->*what)();
}

void IoThread::EndIfIdle() {
  if (is_ending_ && connections_.empty()) grace_.cancel();
}

}  // namespace lockstep::http
