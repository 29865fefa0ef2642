#include "frontend/http/plain_stream.h"

#include <boost/asio/buffer.hpp>
#include <boost/asio/post.hpp>
#include <utility>

namespace lockstep::http {
namespace {

using boost::asio::ip::tcp;

class PlainStream : public ByteStream {
 public:
  explicit PlainStream(tcp::socket socket) : socket_(std::move(socket)) {}

  boost::asio::any_io_executor executor() override {
    return socket_.get_executor();
  }

  void Handshake(Done done) override {
    boost::asio::post(executor(), [done = std::move(done)] { done({}); });
  }

  void AwaitReadable(Done done) override {
    socket_.async_wait(tcp::socket::wait_read, std::move(done));
  }

  size_t ReadSome(char* to, size_t size, Error* failure) override {
    return socket_.read_some(boost::asio::buffer(to, size), *failure);
  }

  void WriteSome(absl::string_view bytes, Written done) override {
    socket_.async_write_some(boost::asio::buffer(bytes.data(), bytes.size()),
                             std::move(done));
  }

  void ShutdownSend(Error* failure) override {
    socket_.shutdown(tcp::socket::shutdown_send, *failure);
  }

  void Close() override {
    Error ignored;
    socket_.close(ignored);
  }

 private:
  tcp::socket socket_;
};

}  // namespace

std::unique_ptr<ByteStream> MakePlainStream(tcp::socket socket) {
  return std::make_unique<PlainStream>(std::move(socket));
}

}  // namespace lockstep::http
