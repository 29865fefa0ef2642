#include "frontend/discovery/api_client.h"

#include <absl/strings/match.h>
#include <absl/strings/str_cat.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/beast/core/error.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/stream_traits.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/error.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/write.hpp>
#include <boost/beast/ssl/ssl_stream.hpp>
#include <chrono>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/status_macros.h"
#include "frontend/discovery/api_status.h"

namespace lockstep {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using Error = boost::system::error_code;

// To connect, shake hands and get the head of an answer.
constexpr std::chrono::seconds kHeadTimeout{15};
constexpr size_t kBufferBytes = 64 << 10;
constexpr size_t kMostHeaderBytes = 16 << 10;
// Of an answer that says what is wrong.
constexpr size_t kMostErrorBytes = 64 << 10;

absl::Status Unavailable(absl::string_view doing, const Error& failure) {
  return absl::UnavailableError(
      absl::StrCat("the API server can not be ", doing, ": ",
                   failure == beast::error::timeout ? "it takes too long"
                                                    : failure.message()));
}

// A peer that is gone without a word is noticed within a minute.
void WatchPeer(int socket) {
  const auto set = [=](int level, int option, int value) {
    setsockopt(socket, level, option, &value, sizeof(value));
  };
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 30);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 10);
  set(IPPROTO_TCP, TCP_KEEPCNT, 3);
}

// As it stands in a URL.
std::string AuthorityOf(const ApiServer& server) {
  const bool is_ipv6 = absl::StrContains(server.host, ':');
  return is_ipv6 ? absl::StrCat("[", server.host, "]:", server.port)
                 : absl::StrCat(server.host, ":", server.port);
}

}  // namespace

// One request and its answer. Each step blocks until it is done, has failed or
// takes too long, or the client was stopped.
class ApiClient::Exchange {
 public:
  Exchange(asio::io_context* io, const ApiServer& server)
      : io_(*io), server_(server), context_(ssl::context::tls_client) {}

  absl::Status Connect(const std::string& ca);
  absl::Status Send(const std::string& target, const std::string& token);
  absl::Status Receive(absl::Duration limit, const OnPart& on_part);

 private:
  using Stream = beast::ssl_stream<beast::tcp_stream>;

  // `start` begins an operation whose handler gets an error first.
  template <typename Start>
  Error Await(const Start& start) {
    std::optional<Error> result;
    start(
        [&result](const Error& failure, const auto&...) { result = failure; });
    while (!result.has_value() && io_.run_one() > 0) continue;
    return result.value_or(asio::error::operation_aborted);
  }

  absl::Status TrustOnly(const std::string& ca);
  absl::Status Refused();
  // What has come of the body, which may be nothing.
  absl::StatusOr<absl::string_view> ReadPart();

  asio::io_context& io_;
  const ApiServer& server_;
  ssl::context context_;
  std::optional<Stream> stream_;
  beast::flat_buffer buffer_{kBufferBytes};
  http::response_parser<http::buffer_body> parser_;
  std::string part_ = std::string(kBufferBytes, '\0');
};

absl::Status ApiClient::Exchange::TrustOnly(const std::string& ca) {
  Error failure;
  context_.add_certificate_authority(asio::buffer(ca), failure);
  if (failure) {
    return absl::FailedPreconditionError(absl::StrCat(
        "the CA of the API server is no PEM certificate: ", failure.message()));
  }
  SSL_CTX_set_min_proto_version(context_.native_handle(), TLS1_2_VERSION);
  context_.set_verify_mode(ssl::verify_peer, failure);
  context_.set_verify_callback(ssl::host_name_verification(server_.host),
                               failure);
  return absl::OkStatus();
}

absl::Status ApiClient::Exchange::Connect(const std::string& ca) {
  LOCKSTEP_RETURN_IF_ERROR(TrustOnly(ca));
  tcp::resolver resolver(io_);
  tcp::resolver::results_type found;
  Error failure = Await([&](auto done) {
    resolver.async_resolve(
        server_.host, server_.port,
        [&found, done](const Error& failure, tcp::resolver::results_type all) {
          found = std::move(all);
          done(failure);
        });
  });
  if (failure) return Unavailable("resolved", failure);
  stream_.emplace(io_, context_);
  Error is_name;
  asio::ip::make_address(server_.host, is_name);
  if (is_name) {
    SSL_set_tlsext_host_name(stream_->native_handle(), server_.host.c_str());
  }
  beast::tcp_stream& socket = beast::get_lowest_layer(*stream_);
  socket.expires_after(kHeadTimeout);
  failure = Await([&](auto done) { socket.async_connect(found, done); });
  if (failure) return Unavailable("reached", failure);
  WatchPeer(socket.socket().native_handle());
  failure = Await([&](auto done) {
    stream_->async_handshake(ssl::stream_base::client, done);
  });
  if (failure) return Unavailable("trusted", failure);
  return absl::OkStatus();
}

absl::Status ApiClient::Exchange::Send(const std::string& target,
                                       const std::string& token) {
  http::request<http::empty_body> request(http::verb::get, target, 11);
  request.set(http::field::host, AuthorityOf(server_));
  request.set(http::field::user_agent, "lockstep-gateway");
  request.set(http::field::accept, "application/json");
  request.set(http::field::authorization, absl::StrCat("Bearer ", token));
  const Error failure =
      Await([&](auto done) { http::async_write(*stream_, request, done); });
  return failure ? Unavailable("asked", failure) : absl::OkStatus();
}

absl::Status ApiClient::Exchange::Receive(absl::Duration limit,
                                          const OnPart& on_part) {
  const auto deadline =
      std::chrono::steady_clock::now() + absl::ToChronoMilliseconds(limit);
  parser_.header_limit(kMostHeaderBytes);
  // The reader of its parts bounds it.
  parser_.body_limit(std::numeric_limits<uint64_t>::max());
  const Error failure = Await([&](auto done) {
    http::async_read_header(*stream_, buffer_, parser_, done);
  });
  if (failure) return Unavailable("read from", failure);
  beast::get_lowest_layer(*stream_).expires_at(deadline);
  if (parser_.get().result() != http::status::ok) return Refused();
  LOCKSTEP_RETURN_IF_ERROR(on_part(""));
  while (!parser_.is_done()) {
    LOCKSTEP_ASSIGN_OR_RETURN(const absl::string_view part, ReadPart());
    if (!part.empty()) LOCKSTEP_RETURN_IF_ERROR(on_part(part));
  }
  return absl::OkStatus();
}

absl::Status ApiClient::Exchange::Refused() {
  std::string body;
  while (!parser_.is_done() && body.size() < kMostErrorBytes) {
    const auto part = ReadPart();
    if (!part.ok()) break;  // the status says enough
    body.append(part->data(), part->size());
  }
  return FromApiStatus(parser_.get().result_int(),
                       nlohmann::json::parse(body, nullptr,
                                             /*allow_exceptions=*/false));
}

absl::StatusOr<absl::string_view> ApiClient::Exchange::ReadPart() {
  http::buffer_body::value_type& body = parser_.get().body();
  body.data = part_.data();
  body.size = part_.size();
  const Error failure = Await([&](auto done) {
    http::async_read_some(*stream_, buffer_, parser_, done);
  });
  if (failure && failure != http::error::need_buffer) {
    return Unavailable("read from", failure);
  }
  return absl::string_view(part_.data(), part_.size() - body.size);
}

ApiClient::ApiClient(ApiServer server, std::string account_folder)
    : server_(std::move(server)),
      account_folder_(std::move(account_folder)),
      work_(asio::make_work_guard(io_)) {}

absl::Status ApiClient::Get(const std::string& target, absl::Duration limit,
                            const OnPart& on_part) {
  LOCKSTEP_ASSIGN_OR_RETURN(const ServiceAccount account,
                            ReadServiceAccount(account_folder_));
  Exchange exchange(&io_, server_);
  absl::Status status = exchange.Connect(account.ca);
  if (status.ok()) status = exchange.Send(target, account.token);
  if (status.ok()) status = exchange.Receive(limit, on_part);
  if (is_stopped_) return absl::CancelledError("the client was stopped");
  return status;
}

void ApiClient::Stop() {
  is_stopped_ = true;
  io_.stop();
}

}  // namespace lockstep
