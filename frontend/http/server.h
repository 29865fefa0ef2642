#pragma once

#include <absl/status/statusor.h>
#include <absl/time/time.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/metrics/histogram.h"
#include "common/security/tls_identity.h"
#include "frontend/http/byte_budget.h"
#include "frontend/http/connection_limits.h"
#include "frontend/http/cross_origin.h"
#include "frontend/http/io_thread.h"
#include "frontend/http/request_reader.h"
#include "frontend/http/router.h"
#include "frontend/http/timeouts.h"
#include "frontend/http/tls_contexts.h"
#include "frontend/ledger/request_ledger.h"

namespace lockstep::http {

struct ServerOptions {
  std::string listen;                // host:port; port 0 takes a free one
  std::string flag = "http_listen";  // named where it can not be listened on
  int threads = 2;
  int max_connections = 16'384;
  int max_connections_per_address = 0;  // 0: as many as in all
  // Must outlive the server. Null: without TLS.
  const TlsIdentity* tls = nullptr;
  std::vector<std::string> allowed_origins = {};  // see CrossOrigin
  RequestLedger* ledger = nullptr;  // of all requests; outlives the server
  RequestLimits limits;
  // Of all bodies that are being read.
  size_t max_body_bytes = size_t{512} << 20;
  // Of all answers that are held as a whole: see Exchange::Room.
  size_t max_answer_bytes = size_t{512} << 20;
  Timeouts timeouts;
  std::function<Response(const Refusal& refusal)> render;
  std::function<Refusal(const Request& request)> guard;  // see SessionContext
};

// An HTTP/1.1 server with a fixed number of I/O threads, "http-0", "http-1", …;
// a connection belongs to one of them from its beginning to its end.
//
//   LOCKSTEP_ASSIGN_OR_RETURN(auto server, Server::Start(options, routes));
//   …
//   server->Drain();  // each answer is its connection's last
//   server->Shutdown(absl::Seconds(1));
//
// Handlers are called on the I/O threads. Drain and Shutdown are the owner's,
// Shutdown once; the rest is any thread's.
class Server {
 public:
  static absl::StatusOr<std::unique_ptr<Server>> Start(
      const ServerOptions& options, std::vector<Route> routes);
  // Without Shutdown: one without grace.
  ~Server();

  int port() const { return port_; }
  int connections() const { return connections_.number(); }

  // How late each I/O thread comes to what is due; not after Shutdown.
  std::vector<const Histogram*> thread_lags() const;

  // Goes on to accept, so that probes are answered, but keeps no connection
  // open behind its answer and closes those that are idle.
  void Drain();

  // Accepts no more; returns when every connection is closed: at once where
  // there is no answer to a request that has come whole, else once it has gone,
  // or after `grace`.
  void Shutdown(absl::Duration grace);

 private:
  using Acceptor = boost::asio::ip::tcp::acceptor;

  Server(const ServerOptions& options, std::vector<Route> routes);
  absl::Status Listen();
  // On the first thread, as is what it leads to.
  void Accept();
  void OnAccepted(boost::asio::ip::tcp::socket socket, IoThread* thread);

  const ServerOptions options_;
  const Router router_;
  const CrossOrigin cross_origin_;
  std::optional<TlsContexts> tls_;
  ByteBudget bodies_;
  ConnectionLimits connections_;
  int port_ = 0;

  std::vector<std::unique_ptr<IoThread>> threads_;
  std::optional<Acceptor> acceptor_;
  std::optional<boost::asio::steady_timer> retry_;
  size_t next_thread_ = 0;
};

}  // namespace lockstep::http
