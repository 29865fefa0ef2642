#include "frontend/http/tls_stream.h"

#include <absl/strings/string_view.h>
#include <glog/logging.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <sys/socket.h>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <cstdint>
#include <utility>

namespace lockstep::http {
namespace {

using boost::asio::ip::tcp;

constexpr absl::string_view kNeedsTls =
    "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain\r\n"
    "content-length: 41\r\nconnection: close\r\n\r\n"
    "This port speaks HTTPS: use https:// URLs";

constexpr int kMostUnread = 16;  // times a buffer

int SocketOf(BIO* bio) {
  return static_cast<int>(reinterpret_cast<intptr_t>(BIO_get_data(bio)));
}

bool IsTransient() {
  return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

int WriteSocket(BIO* bio, const char* from, int size) {
  BIO_clear_retry_flags(bio);
  // OpenSSL's own would raise SIGPIPE.
  const auto sent = static_cast<int>(
      send(SocketOf(bio), from, static_cast<size_t>(size), MSG_NOSIGNAL));
  if (sent < 0 && IsTransient()) BIO_set_retry_write(bio);
  return sent;
}

int ReadSocket(BIO* bio, char* to, int size) {
  BIO_clear_retry_flags(bio);
  const auto got =
      static_cast<int>(recv(SocketOf(bio), to, static_cast<size_t>(size), 0));
  if (got < 0 && IsTransient()) BIO_set_retry_read(bio);
  return got;
}

long ControlSocket(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;  // nothing is held back
}

BIO_METHOD* MakeSocketMethod() {
  BIO_METHOD* const method =
      BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket");
  BIO_meth_set_write(method, WriteSocket);
  BIO_meth_set_read(method, ReadSocket);
  BIO_meth_set_ctrl(method, ControlSocket);
  return method;
}

// The socket stays its owner's.
BIO* MakeSocketBio(int socket) {
  static BIO_METHOD* const method = MakeSocketMethod();
  BIO* const bio = BIO_new(method);
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<intptr_t>(socket)));
  BIO_set_init(bio, 1);
  return bio;
}

class TlsStream : public ByteStream {
 public:
  TlsStream(tcp::socket socket, SSL_CTX* context)
      : socket_(std::move(socket)), ssl_(SSL_new(context)) {
    BIO* const bio = MakeSocketBio(socket_.native_handle());
    SSL_set_bio(ssl_.get(), bio, bio);
    SSL_set_accept_state(ssl_.get());
  }

  boost::asio::any_io_executor executor() override {
    return socket_.get_executor();
  }

  void Handshake(Done done) override {
    ERR_clear_error();
    const int result = SSL_do_handshake(ssl_.get());
    if (result == 1) return Post(std::move(done), {});
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
        return GoOn(tcp::socket::wait_read, std::move(done));
      case SSL_ERROR_WANT_WRITE:
        return GoOn(tcp::socket::wait_write, std::move(done));
      default:
        DescribeFailure();
        return Post(std::move(done), Fail());
    }
  }

  void AwaitReadable(Done done) override {
    if (SSL_pending(ssl_.get()) > 0) return Post(std::move(done), {});
    socket_.async_wait(tcp::socket::wait_read, std::move(done));
  }

  size_t ReadSome(char* to, size_t size, Error* failure) override {
    ERR_clear_error();
    size_t bytes = 0;
    const int result = SSL_read_ex(ssl_.get(), to, size, &bytes);
    if (result == 1) return bytes;
    switch (SSL_get_error(ssl_.get(), result)) {
      case SSL_ERROR_WANT_READ:
      // An answer to a key update, which goes out with the next write.
      case SSL_ERROR_WANT_WRITE:
        *failure = boost::asio::error::would_block;
        break;
      case SSL_ERROR_ZERO_RETURN:
        *failure = boost::asio::error::eof;
        break;
      default:
        *failure = Fail();
    }
    return 0;
  }

  void WriteSome(absl::string_view bytes, Written done) override {
    ERR_clear_error();
    size_t written = 0;
    const int result =
        SSL_write_ex(ssl_.get(), bytes.data(), bytes.size(), &written);
    if (result == 1) return PostWritten(std::move(done), {}, written);
    const int wants = SSL_get_error(ssl_.get(), result);
    if (wants != SSL_ERROR_WANT_WRITE && wants != SSL_ERROR_WANT_READ) {
      return PostWritten(std::move(done), Fail(), 0);
    }
    socket_.async_wait(
        wants == SSL_ERROR_WANT_WRITE ? tcp::socket::wait_write
                                      : tcp::socket::wait_read,
        [this, bytes, done = std::move(done)](const Error& failure) {
          if (failure || !socket_.is_open()) return done(Closed(), 0);
          WriteSome(bytes, done);
        });
  }

  void ShutdownSend(Error* failure) override {
    SayGoodbye();
    socket_.shutdown(tcp::socket::shutdown_send, *failure);
  }

  void Close() override {
    if (!socket_.is_open()) return;
    SayGoodbye();
    Error ignored;
    socket_.close(ignored);
  }

 private:
  struct Free {
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };

  static Error Closed() { return boost::asio::error::operation_aborted; }

  // OpenSSL must not be used any more.
  Error Fail() {
    has_failed_ = true;
    return boost::asio::error::connection_reset;
  }

  void Post(Done done, Error failure) {
    boost::asio::post(executor(),
                      [done = std::move(done), failure] { done(failure); });
  }

  void PostWritten(Written done, Error failure, size_t bytes) {
    boost::asio::post(executor(), [done = std::move(done), failure, bytes] {
      done(failure, bytes);
    });
  }

  void GoOn(tcp::socket::wait_type when, Done done) {
    socket_.async_wait(when,
                       [this, done = std::move(done)](const Error& failure) {
                         if (failure || !socket_.is_open()) {
                           return done(Closed());
                         }
                         Handshake(done);
                       });
  }

  void DescribeFailure() {
    const unsigned long code = ERR_peek_error();
    if (ERR_GET_LIB(code) == ERR_LIB_SSL &&
        ERR_GET_REASON(code) == SSL_R_HTTP_REQUEST) {
      return AnswerWithoutTls();
    }
    if (code == 0) return;  // the client went, or only looked
    LOG_EVERY_N(WARNING, 100)
        << "a TLS handshake failed: " << ERR_reason_error_string(code);
  }

  // As far as that goes without waiting. What the client has said is read
  // first: closed over unread bytes a connection takes its answer along.
  void AnswerWithoutTls() {
    Error failure;
    char unread[4096];
    for (int i = 0; i < kMostUnread && !failure; ++i) {
      socket_.read_some(boost::asio::buffer(unread), failure);
    }
    socket_.write_some(boost::asio::buffer(kNeedsTls.data(), kNeedsTls.size()),
                       failure);
  }

  // So that the other end knows that nothing was cut off. Does not wait.
  void SayGoodbye() {
    if (has_failed_ || SSL_in_init(ssl_.get())) return;
    ERR_clear_error();
    SSL_shutdown(ssl_.get());
  }

  tcp::socket socket_;
  const std::unique_ptr<SSL, Free> ssl_;
  bool has_failed_ = false;
};

}  // namespace

std::unique_ptr<ByteStream> MakeTlsStream(tcp::socket socket,
                                          SSL_CTX* context) {
  return std::make_unique<TlsStream>(std::move(socket), context);
}

}  // namespace lockstep::http
