#include "tests/testing/kubernetes/fake_api_server.h"

#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <glog/logging.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <utility>

#include "tests/testing/write_file.h"

namespace lockstep::testing {
namespace {

namespace asio = boost::asio;
namespace http = boost::beast::http;
using asio::ip::tcp;
using Error = boost::system::error_code;
using nlohmann::json;

std::string StatusObject(int code, const std::string& message) {
  return json{{"kind", "Status"}, {"code", code}, {"message", message}}.dump();
}

// The value of a parameter of a URL's query.
std::string Parameter(absl::string_view target, absl::string_view name) {
  const std::string key = absl::StrCat("&", name, "=");
  const size_t at = target.find(key);
  if (at == absl::string_view::npos) return "";
  const absl::string_view rest = target.substr(at + key.size());
  return std::string(rest.substr(0, rest.find('&')));
}

}  // namespace

struct FakeApiServer::Connection {
  Connection(tcp::socket socket, asio::ssl::context& context)
      : stream(std::move(socket), context) {}

  int socket() { return stream.next_layer().native_handle(); }

  void Send(int status, const std::string& body) {
    http::response<http::string_body> response(http::int_to_status(status), 11,
                                               body);
    response.keep_alive(false);
    response.prepare_payload();
    Error ignored;
    http::write(stream, response, ignored);
    stream.shutdown(ignored);
  }

  void StartStream() {
    http::response<http::empty_body> head(http::status::ok, 11);
    head.chunked(true);
    http::response_serializer<http::empty_body> serializer(head);
    Error ignored;
    http::write_header(stream, serializer, ignored);
  }

  void SendChunks(absl::string_view bytes, size_t piece_bytes) {
    Error failure;
    while (!bytes.empty() && !failure) {
      const absl::string_view piece = bytes.substr(0, piece_bytes);
      asio::write(stream,
                  http::make_chunk(asio::buffer(piece.data(), piece.size())),
                  failure);
      bytes.remove_prefix(piece.size());
    }
  }

  void EndStream() {
    Error ignored;
    asio::write(stream, http::make_chunk_last(), ignored);
    stream.shutdown(ignored);
  }

  asio::ssl::stream<tcp::socket> stream;
  http::request<http::empty_body> request;
};

FakeApiServer::FakeApiServer(std::string account_folder)
    : account_folder_(std::move(account_folder)) {
  const Issued own = ca_.Issue({.name = "kubernetes"});
  context_.use_certificate_chain(asio::buffer(own.certificate));
  context_.use_private_key(asio::buffer(own.key), asio::ssl::context::pem);
  WriteFile(account_folder_ + "/ca.crt", ca_.certificate());
  ChangeToken("first-token");
  Start();
}

FakeApiServer::~FakeApiServer() { Stop(); }

void FakeApiServer::Start() {
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = false;
  }
  acceptor_ = std::thread([this] { Accept(); });
  absl::MutexLock lock(&mutex_);
  const auto listens = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return listening_ >= 0;
  };
  mutex_.Await(absl::Condition(&listens));
}

void FakeApiServer::Stop() {
  std::vector<std::thread> threads;
  {
    absl::MutexLock lock(&mutex_);
    if (stopping_) return;
    stopping_ = true;
    shutdown(listening_, SHUT_RDWR);
    for (const int socket : sockets_) shutdown(socket, SHUT_RDWR);
  }
  acceptor_.join();
  {
    absl::MutexLock lock(&mutex_);
    threads.swap(threads_);
  }
  for (std::thread& thread : threads) thread.join();
}

void FakeApiServer::Accept() {
  asio::io_context io;
  tcp::acceptor acceptor(
      io, tcp::endpoint(asio::ip::address_v4::loopback(), port_));
  {
    absl::MutexLock lock(&mutex_);
    port_ = acceptor.local_endpoint().port();
    listening_ = acceptor.native_handle();
  }
  while (true) {
    Error failure;
    tcp::socket socket = acceptor.accept(failure);
    absl::MutexLock lock(&mutex_);
    if (stopping_ || failure) {
      listening_ = -1;
      return;
    }
    sockets_.insert(socket.native_handle());
    threads_.emplace_back([this, native = socket.release()] {
      asio::io_context io;
      Serve(tcp::socket(io, tcp::v4(), native));
    });
  }
}

void FakeApiServer::Serve(tcp::socket socket) {
  Connection connection(std::move(socket), context_);
  Error failure;
  connection.stream.handshake(asio::ssl::stream_base::server, failure);
  if (!failure) {
    boost::beast::flat_buffer buffer;
    http::read(connection.stream, buffer, connection.request, failure);
  }
  if (!failure) Answer(connection);
  absl::MutexLock lock(&mutex_);
  sockets_.erase(connection.socket());
}

void FakeApiServer::Answer(Connection& connection) {
  const std::string target(connection.request.target());
  const std::string authorization(
      connection.request[http::field::authorization]);
  const std::string from = Parameter(target, "resourceVersion");
  int status = 200;
  std::string body;
  {
    absl::MutexLock lock(&mutex_);
    targets_.push_back(target);
    ++requests_;
    if (holds_) mutex_.Await(absl::Condition(&stopping_));
    if (refusal_ != 0) {
      status = refusal_;
      body = StatusObject(refusal_, refusal_message_);
    } else if (authorization != "Bearer " + token_) {
      status = 401;
      body = StatusObject(401, "Unauthorized");
    } else if (from.empty()) {
      ++lists_;
      body = List();
    }
  }
  if (status == 200 && !from.empty()) {
    uint64_t version = 0;
    CHECK(absl::SimpleAtoi(from, &version)) << target;
    return Watch(connection, version);
  }
  connection.Send(status, body);
}

void FakeApiServer::Watch(Connection& connection, uint64_t from) {
  bool is_forgotten = false, by_answer = false;
  size_t next = 0;
  size_t piece_bytes = 0;
  {
    absl::MutexLock lock(&mutex_);
    ++watches_;
    is_forgotten = from < forgotten_;
    by_answer = forgets_by_answer_;
    piece_bytes = piece_bytes_;
    while (next < news_.size() && news_[next].version <= from) ++next;
  }
  const std::string gone = StatusObject(410, "too old resource version");
  if (is_forgotten && by_answer) return connection.Send(410, gone);
  connection.StartStream();
  if (is_forgotten) {
    connection.SendChunks(
        absl::StrCat("{\"type\":\"ERROR\",\"object\":", gone, "}\n"),
        piece_bytes);
    return connection.EndStream();
  }
  while (true) {
    News news;
    {
      absl::MutexLock lock(&mutex_);
      const auto has_news = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return stopping_ || next < news_.size();
      };
      mutex_.Await(absl::Condition(&has_news));
      if (stopping_) return;
      news = news_[next++];
    }
    if (news.kind == News::Kind::kChange && news.version <= from) continue;
    if (news.kind == News::Kind::kCut) return;
    if (news.kind == News::Kind::kEnd) return connection.EndStream();
    connection.SendChunks(news.bytes, piece_bytes);
  }
}

void FakeApiServer::Append(const char* type, json object) {
  object["metadata"]["resourceVersion"] = absl::StrCat(++version_);
  news_.push_back(
      {version_, News::Kind::kChange,
       json{{"type", type}, {"object", std::move(object)}}.dump() + "\n"});
}

std::string FakeApiServer::List() const {
  json items = json::array();
  for (const auto& [name, object] : objects_) items.push_back(object);
  return json{{"metadata", {{"resourceVersion", absl::StrCat(version_)}}},
              {"items", std::move(items)}}
      .dump();
}

void FakeApiServer::Put(json object) {
  absl::MutexLock lock(&mutex_);
  const std::string name = object["metadata"]["name"];
  const bool is_new = objects_.insert_or_assign(name, object).second;
  Append(is_new ? "ADDED" : "MODIFIED", std::move(object));
}

void FakeApiServer::Delete(const std::string& name) {
  absl::MutexLock lock(&mutex_);
  Append("DELETED", objects_.at(name));
  objects_.erase(name);
}

void FakeApiServer::Bookmark() {
  absl::MutexLock lock(&mutex_);
  Append("BOOKMARK", json::object());
}

void FakeApiServer::Forget(bool by_answer) {
  absl::MutexLock lock(&mutex_);
  forgotten_ = ++version_;
  forgets_by_answer_ = by_answer;
}

void FakeApiServer::SetBack() {
  absl::MutexLock lock(&mutex_);
  version_ = 1;
  forgotten_ = 0;
  news_.clear();
}

void FakeApiServer::Tell(News::Kind kind, const std::string& bytes) {
  absl::MutexLock lock(&mutex_);
  news_.push_back({version_, kind, bytes});
}

void FakeApiServer::SendToWatches(const std::string& bytes) {
  Tell(News::Kind::kBytes, bytes);
}
void FakeApiServer::EndWatches() { Tell(News::Kind::kEnd); }
void FakeApiServer::CutWatches() { Tell(News::Kind::kCut); }

void FakeApiServer::ChangeToken(const std::string& token) {
  WriteFile(account_folder_ + "/token", token + "\n");
  absl::MutexLock lock(&mutex_);
  token_ = token;
}

void FakeApiServer::Refuse(int status, const std::string& message) {
  absl::MutexLock lock(&mutex_);
  refusal_ = status;
  refusal_message_ = message;
}

void FakeApiServer::Hold() {
  absl::MutexLock lock(&mutex_);
  holds_ = true;
}

void FakeApiServer::SetPieceBytes(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  piece_bytes_ = bytes;
}

std::vector<std::string> FakeApiServer::targets() const {
  absl::MutexLock lock(&mutex_);
  return targets_;
}

void FakeApiServer::Await(const int& count, int number) {
  const auto is_reached = [&]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return count >= number;
  };
  absl::MutexLock lock(&mutex_);
  mutex_.Await(absl::Condition(&is_reached));
}

}  // namespace lockstep::testing
