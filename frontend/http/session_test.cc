// What a Session makes of clients that only a test can be: its stream is in
// memory, so what is written waits for as long as the test likes.

#include "frontend/http/session.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "frontend/http/byte_budget.h"
#include "frontend/http/byte_stream.h"
#include "frontend/http/cross_origin.h"
#include "frontend/http/response_writer.h"
#include "frontend/http/router.h"

namespace lockstep::http {
namespace {

using Error = ByteStream::Error;
using std::chrono::milliseconds;

// Both ends of a connection.
struct Wire {
  boost::asio::io_context io;
  std::string sent;  // by the client, and not read yet
  bool has_left = false;
  size_t takes = 1 << 30;  // bytes that the client will still take
  size_t drip = 0;         // not 0: so many of them in ten milliseconds
  std::string written;
  bool is_closed = false;
  ByteStream::Done readable;
  ByteStream::Written stuck;

  void Send(const std::string& bytes) {
    sent += bytes;
    Tell();
  }
  void Leave() {
    has_left = true;
    Tell();
  }
  void Tell() {
    if (readable == nullptr || (sent.empty() && !has_left)) return;
    boost::asio::post(io,
                      [done = std::exchange(readable, nullptr)] { done({}); });
  }
};

class WireStream : public ByteStream {
 public:
  explicit WireStream(Wire* wire) : wire_(wire) {}

  boost::asio::any_io_executor executor() override {
    return wire_->io.get_executor();
  }
  void Handshake(Done done) override {
    boost::asio::post(wire_->io, [done = std::move(done)] { done({}); });
  }
  void AwaitReadable(Done done) override {
    wire_->readable = std::move(done);
    wire_->Tell();
  }
  size_t ReadSome(char* to, size_t size, Error* failure) override {
    if (wire_->sent.empty()) {
      *failure = wire_->has_left ? Error(boost::asio::error::eof)
                                 : Error(boost::asio::error::would_block);
      return 0;
    }
    size = std::min(size, wire_->sent.size());
    std::memcpy(to, wire_->sent.data(), size);
    wire_->sent.erase(0, size);
    return size;
  }
  void WriteSome(absl::string_view bytes, Written done) override {
    const size_t size = std::min(bytes.size(), wire_->takes);
    if (size == 0) {
      wire_->stuck = std::move(done);
      return;
    }
    wire_->takes -= size;
    if (wire_->drip > 0) return Drip(bytes, std::move(done));
    wire_->written.append(bytes.data(), size);
    boost::asio::post(wire_->io,
                      [size, done = std::move(done)] { done({}, size); });
  }
  void ShutdownSend(Error*) override {}
  void Close() override {
    wire_->is_closed = true;
    timer_.cancel();
    const Error gone = boost::asio::error::operation_aborted;
    boost::asio::post(wire_->io,
                      [gone, read = std::exchange(wire_->readable, nullptr),
                       write = std::exchange(wire_->stuck, nullptr)] {
                        if (read != nullptr) read(gone);
                        if (write != nullptr) write(gone, 0);
                      });
  }

 private:
  void Drip(absl::string_view bytes, Written done) {
    const size_t size = std::min(bytes.size(), wire_->drip);
    wire_->written.append(bytes.data(), size);
    timer_.expires_after(milliseconds(10));
    timer_.async_wait([size, done = std::move(done)](const Error& failure) {
      done(failure, size);
    });
  }

  Wire* const wire_;
  boost::asio::steady_timer timer_{wire_->io};
};

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() {
    context_.router = &router_;
    context_.cross_origin = &cross_origin_;
    context_.render = [](const Refusal& refusal) {
      return Response{refusal.status, {}, refusal.message};
    };
    context_.bodies = &bodies_;
    context_.ledger = nullptr;
    context_.scratch = scratch_.data();
    context_.scratch_bytes = scratch_.size();
  }

  void Start() {
    const auto session =
        std::make_shared<Session>(std::make_unique<WireStream>(&wire_),
                                  "client", &context_, [](Session*) {});
    session->Start();
  }

  // Until nothing can happen any more, or for much longer than any time-out.
  void Run() {
    wire_.io.restart();
    wire_.io.run_for(std::chrono::seconds(20));
  }
  // What can happen without time going by.
  void Poll() {
    wire_.io.restart();
    wire_.io.poll();
  }

  static constexpr size_t kLarge = 1'000'000;

  Wire wire_;
  std::shared_ptr<ResponseWriter> held_;
  const Router router_{
      {{"POST", "/echo",
        [](Request request, auto writer) {
          writer->Send({200, {}, request.body});
        },
        "application/json"},
       {"GET", "/large",
        [](Request, auto writer) {
          writer->Send({200, {}, std::string(kLarge, 'a')});
        }},
       {"POST", "/held", [this](Request, auto writer) { held_ = writer; },
        "application/json"}}};
  const CrossOrigin cross_origin_{{}};
  ByteBudget bodies_{1 << 20};
  std::vector<char> scratch_ = std::vector<char>(64 << 10);
  SessionContext context_;
};

// Its client sends a body, or a part of one, and does not read that it may.
TEST_F(SessionTest, NoWriteIsWithoutADeadline) {
  context_.timeouts.write = milliseconds(50);
  const struct {
    std::string path;
    std::string framing;
    std::string body;
  } kCases[] = {
      {"/echo", "content-length: 2", ""},
      {"/echo", "content-length: 2", "h"},
      {"/echo", "content-length: 2", "hi"},
      {"/held", "content-length: 2", "hi"},
      {"/held", "content-length: 2", "hi and more"},
      {"/echo", "transfer-encoding: chunked", "2\r\nhi\r\n"},
      {"/echo", "transfer-encoding: chunked", "no chunk\r\n"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(absl::StrCat(c.path, " ", c.framing, " ", c.body));
    wire_.takes = 0;
    wire_.is_closed = false;
    Start();
    wire_.Send(absl::StrCat("POST ", c.path,
                            " HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n"
                            "content-type: application/json\r\n",
                            c.framing, "\r\n\r\n"));
    Poll();
    wire_.Send(c.body);
    Run();
    EXPECT_TRUE(wire_.is_closed);
    EXPECT_EQ(wire_.written, "");
    held_ = nullptr;
    Poll();
    wire_.sent.clear();
  }
}

// However often it takes a little.
TEST_F(SessionTest, AClientThatReadsTooSlowlyIsClosed) {
  context_.timeouts.write = milliseconds(500);
  context_.timeouts.idle = milliseconds(10);
  context_.timeouts.least_write_bytes = 60'000;
  for (const size_t drip : {1'000, 60'000}) {
    SCOPED_TRACE(drip);
    wire_.drip = drip;
    wire_.written.clear();
    wire_.is_closed = false;
    Start();
    wire_.Send("GET /large HTTP/1.1\r\nhost: x\r\n\r\n");
    Run();
    EXPECT_TRUE(wire_.is_closed);
    EXPECT_EQ(wire_.written.substr(0, 12), "HTTP/1.1 200");
    EXPECT_EQ(wire_.written.size() > kLarge, drip == 60'000)
        << wire_.written.size();
  }
}

TEST_F(SessionTest, ABodyThatIsLateIsRefusedWhereItsClientReads) {
  context_.timeouts.body = milliseconds(50);
  context_.timeouts.linger = milliseconds(50);
  Start();
  wire_.Send(
      "POST /echo HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n"
      "content-type: application/json\r\ncontent-length: 2\r\n\r\n");
  Run();
  EXPECT_TRUE(wire_.is_closed);
  EXPECT_EQ(wire_.written.substr(0, 37),
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 408");
}

// However much it has sent before.
TEST_F(SessionTest, AClientThatLeavesIsNoticedWhileItIsAnswered) {
  for (const bool is_last : {false, true}) {
    for (const size_t ahead :
         {0, 10'000, 65'000, 100'000, 500'000, 3'000'000}) {
      SCOPED_TRACE(absl::StrCat(ahead, is_last ? " behind its last" : ""));
      wire_.has_left = wire_.is_closed = false;
      bool is_gone = false;
      Start();
      wire_.Send(absl::StrCat("POST /held HTTP/1.1\r\nhost: x\r\n",
                              is_last ? "connection: close\r\n" : "",
                              "content-type: application/json\r\n"
                              "content-length: 2\r\n\r\nhi"));
      Poll();
      ASSERT_NE(held_, nullptr);
      held_->OnGone([&] { is_gone = true; });
      wire_.Send(std::string(ahead, 'a'));
      wire_.Leave();
      Poll();
      EXPECT_TRUE(is_gone);
      EXPECT_TRUE(wire_.is_closed);
      held_ = nullptr;
      Poll();
      wire_.sent.clear();
    }
  }
}

}  // namespace
}  // namespace lockstep::http
