#include "frontend/http/server.h"

#include <absl/strings/str_cat.h>
#include <absl/strings/string_view.h>
#include <absl/synchronization/notification.h>
#include <glog/logging.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <chrono>
#include <utility>

#include "common/status_macros.h"
#include "frontend/http/exchange.h"

namespace lockstep::http {
namespace {

using boost::asio::ip::tcp;
using Error = boost::system::error_code;

// When no more sockets can be had, until some have been closed.
constexpr std::chrono::milliseconds kRetryAfter{100};

constexpr absl::string_view kFull =
    "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\n"
    "content-length: 0\r\nconnection: close\r\n\r\n";

Error Open(const std::string& listen, tcp::acceptor* acceptor) {
  const size_t colon = listen.rfind(':');
  std::string host = listen.substr(0, colon);
  if (host.size() >= 2 && host.front() == '[') {
    host = host.substr(1, host.size() - 2);
  }
  Error failure;
  tcp::resolver resolver(acceptor->get_executor());
  const auto found = resolver.resolve(
      host, listen.substr(colon + 1),
      tcp::resolver::passive | tcp::resolver::numeric_service, failure);
  if (failure) return failure;
  const tcp::endpoint endpoint = *found.begin();
  acceptor->open(endpoint.protocol(), failure);
  if (!failure)
    acceptor->set_option(tcp::acceptor::reuse_address(true), failure);
  if (!failure) acceptor->bind(endpoint, failure);
  if (!failure)
    acceptor->listen(tcp::acceptor::max_listen_connections, failure);
  return failure;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(
    const ServerOptions& options, std::vector<Route> routes) {
  std::unique_ptr<Server> server(new Server(options, std::move(routes)));
  LOCKSTEP_RETURN_IF_ERROR(server->Listen());
  boost::asio::post(server->threads_[0]->io(),
                    [server = server.get()] { server->Accept(); });
  return server;
}

Server::Server(const ServerOptions& options, std::vector<Route> routes)
    : options_(options),
      router_(std::move(routes)),
      cross_origin_(options.allowed_origins),
      bodies_(options.max_body_bytes),
      connections_(options.max_connections,
                   options.max_connections_per_address) {
  if (options_.tls != nullptr) tls_.emplace(options_.tls);
  const auto answers = std::make_shared<Exchange::Room>(
      options_.max_answer_bytes,
      options_.render({503,
                       "the server holds too many large answers already; try "
                       "again later."}));
  for (int i = 0; i < options_.threads; ++i) {
    SessionContext context;
    context.router = &router_;
    context.cross_origin = &cross_origin_;
    context.limits = options_.limits;
    context.timeouts = options_.timeouts;
    context.render = options_.render;
    context.guard = options_.guard;
    context.bodies = &bodies_;
    context.answers = answers;
    context.ledger = options_.ledger;
    threads_.push_back(
        std::make_unique<IoThread>(absl::StrCat("http-", i), std::move(context),
                                   tls_.has_value() ? &*tls_ : nullptr));
  }
}

Server::~Server() {
  if (!threads_.empty()) Shutdown(absl::ZeroDuration());
}

absl::Status Server::Listen() {
  acceptor_.emplace(threads_[0]->io());
  retry_.emplace(threads_[0]->io());
  const Error failure = Open(options_.listen, &*acceptor_);
  if (failure) {
    return absl::UnavailableError(absl::StrCat(
        "cannot listen on ", options_.listen, ": ", failure.message(),
        "; choose another with --", options_.flag, "."));
  }
  port_ = acceptor_->local_endpoint().port();
  return absl::OkStatus();
}

std::vector<const Histogram*> Server::thread_lags() const {
  std::vector<const Histogram*> lags;
  for (const auto& thread : threads_) lags.push_back(&thread->lag());
  return lags;
}

void Server::Drain() {
  for (const auto& thread : threads_) thread->Drain();
}

void Server::Shutdown(absl::Duration grace) {
  absl::Notification closed;  // behind it no thread gets another connection
  boost::asio::post(threads_[0]->io(), [this, &closed] {
    Error ignored;
    acceptor_->close(ignored);
    retry_->cancel();
    closed.Notify();
  });
  closed.WaitForNotification();
  for (const auto& thread : threads_) thread->Shutdown(grace);
  for (const auto& thread : threads_) thread->Join();
  acceptor_.reset();
  retry_.reset();
  threads_.clear();
}

void Server::Accept() {
  if (!acceptor_->is_open()) return;
  IoThread* const thread = threads_[next_thread_++ % threads_.size()].get();
  acceptor_->async_accept(
      thread->io(), [this, thread](const Error& failure, tcp::socket socket) {
        if (!acceptor_->is_open()) return;
        if (!failure) {
          OnAccepted(std::move(socket), thread);
          return Accept();
        }
        if (failure == boost::asio::error::connection_aborted) return Accept();
        LOG_EVERY_N(WARNING, 100)
            << "cannot accept a connection: " << failure.message();
        retry_->expires_after(kRetryAfter);
        retry_->async_wait([this](const Error&) { Accept(); });
      });
}

void Server::OnAccepted(tcp::socket socket, IoThread* thread) {
  Error ignored;
  const tcp::endpoint client = socket.remote_endpoint(ignored);
  if (auto place = connections_.Enter(client.address())) {
    return thread->Adopt(std::move(socket), *std::move(place));
  }
  LOG_EVERY_N(WARNING, 100)
      << "refusing a connection: there are " << connections_.number()
      << ", or as many from its address as may be";
  if (tls_.has_value()) return;
  socket.non_blocking(true, ignored);
  socket.write_some(boost::asio::buffer(kFull.data(), kFull.size()), ignored);
}

}  // namespace lockstep::http
