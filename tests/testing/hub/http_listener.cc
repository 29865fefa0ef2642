#include "tests/testing/hub/http_listener.h"

#include <absl/strings/str_cat.h>
#include <pthread.h>
#include <sys/socket.h>

#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <utility>

namespace lockstep::testing {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;

std::string Text(const HttpListener::Answer& answer, bool has_body) {
  const int64_t length = answer.length >= 0
                             ? answer.length
                             : static_cast<int64_t>(answer.body.size());
  std::string text = absl::StrCat("HTTP/1.1 ", answer.status, " Said\r\n");
  for (const auto& [name, value] : answer.fields) {
    absl::StrAppend(&text, name, ": ", value, "\r\n");
  }
  absl::StrAppend(&text, "content-length: ", length,
                  "\r\nconnection: close\r\n\r\n");
  if (!has_body) return text;
  return text + (answer.cut_after_bytes >= 0
                     ? answer.body.substr(0, answer.cut_after_bytes)
                     : answer.body);
}

}  // namespace

HttpListener::HttpListener(std::function<Answer(const Request&)> handler)
    : handler_(std::move(handler)),
      acceptor_(context_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
      thread_([this] { Accept(); }) {
  pthread_setname_np(thread_.native_handle(), "listener");
}

// A thread that waits in accept is woken by this.
HttpListener::~HttpListener() {
  shutdown(acceptor_.native_handle(), SHUT_RDWR);
  thread_.join();
  for (std::thread& connection : connections_) connection.join();
}

std::string HttpListener::url() const {
  return absl::StrCat("http://127.0.0.1:", acceptor_.local_endpoint().port());
}

void HttpListener::Accept() {
  while (true) {
    error_code error;
    tcp::socket socket = acceptor_.accept(error);
    if (error) return;
    connections_.emplace_back(&HttpListener::Serve, this, std::move(socket));
    pthread_setname_np(connections_.back().native_handle(), "connection");
  }
}

void HttpListener::Serve(tcp::socket socket) {
  boost::beast::flat_buffer buffer;
  http::request<http::string_body> read;
  error_code error;
  http::read(socket, buffer, read, error);
  if (error) return;
  const auto field = [&read](http::field name) {
    return std::string(read[name]);
  };
  const Answer answer =
      handler_({.method = std::string(read.method_string()),
                .target = std::string(read.target()),
                .authorization = field(http::field::authorization),
                .range = field(http::field::range)});
  const bool has_body = read.method() != http::verb::head;
  asio::write(socket, asio::buffer(Text(answer, has_body)), error);
}

}  // namespace lockstep::testing
