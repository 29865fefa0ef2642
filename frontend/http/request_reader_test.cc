#include "frontend/http/request_reader.h"

#include <absl/strings/str_cat.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace lockstep::http {
namespace {

const RequestLimits kLimits = {/*header_bytes=*/400, /*fields=*/5,
                               /*body_bytes=*/20};

// Gives all bytes, in pieces of a size, as a connection would.
RequestReader Read(absl::string_view bytes, size_t piece = 1000) {
  RequestReader reader(kLimits);
  std::string input;
  while (!bytes.empty() || !input.empty()) {
    const size_t before = input.size();
    input.append(bytes.data(), std::min(piece, bytes.size()));
    bytes.remove_prefix(std::min(piece, bytes.size()));
    size_t used = 0;
    do {
      if (reader.is_complete() || reader.refusal().status != 0) return reader;
      used = reader.Put(input);
      input.erase(0, used);
    } while (used > 0 && !input.empty());
    if (bytes.empty() && input.size() == before) break;
  }
  return reader;
}

TEST(RequestReader, ReadsARequestHoweverItIsCut) {
  const std::string kRequest =
      "POST /a%20b?q HTTP/1.1\r\nHost: x\r\nX-Any:  some  \r\n"
      "Content-Length: 5\r\n\r\nhello";
  for (size_t piece = 1; piece <= kRequest.size(); ++piece) {
    RequestReader reader = Read(kRequest, piece);
    ASSERT_TRUE(reader.is_complete()) << piece << reader.refusal().message;
    EXPECT_FALSE(reader.wants_close());
    const Request request = reader.TakeRequest();
    EXPECT_EQ(request.method, "POST");
    EXPECT_EQ(request.path, "/a b");
    EXPECT_EQ(*request.Find("x-any"), "some");
    EXPECT_EQ(request.body, "hello");
  }
}

TEST(RequestReader, JoinsChunksHoweverTheyAreCut) {
  const std::string kRequest =
      "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
      "3\r\nabc\r\n2;ext=1\r\nde\r\n0\r\nTrailer: x\r\n\r\n";
  for (size_t piece = 1; piece <= kRequest.size(); ++piece) {
    RequestReader reader = Read(kRequest, piece);
    ASSERT_TRUE(reader.is_complete()) << piece << reader.refusal().message;
    EXPECT_EQ(reader.request().body, "abcde");
    EXPECT_EQ(reader.request().Find("trailer"), nullptr);
  }
}

TEST(RequestReader, StopsBehindTheHeaderAndBehindTheRequest) {
  RequestReader reader(kLimits);
  const std::string header =
      "POST / HTTP/1.1\r\nhost: x\r\n"
      "content-length: 2\r\n\r\n";
  EXPECT_EQ(reader.Put(header + "hiGET "), header.size());
  EXPECT_TRUE(reader.has_header());
  EXPECT_TRUE(reader.has_body());
  EXPECT_EQ(reader.Put("hiGET "), 2);
  EXPECT_TRUE(reader.is_complete());
}

TEST(RequestReader, KnowsWhetherTheConnectionStays) {
  EXPECT_FALSE(Read("GET / HTTP/1.1\r\nhost: x\r\n\r\n").wants_close());
  EXPECT_TRUE(Read("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
                  .wants_close());
  EXPECT_TRUE(Read("GET / HTTP/1.0\r\n\r\n").wants_close());
  EXPECT_FALSE(
      Read("GET / HTTP/1.0\r\nconnection: keep-alive\r\n\r\n").wants_close());
  EXPECT_FALSE(Read("\r\n\r\nGET / HTTP/1.1\r\nhost: x\r\n\r\n").has_body());
}

TEST(RequestReader, RefusesWhatIsNotForIt) {
  const std::string kStart = "POST / HTTP/1.1\r\nhost: x\r\n";
  const struct {
    std::string request;
    int status;
  } kCases[] = {
      {"\x16\x03\x01 TLS\r\n\r\n", 400},
      {"GET\r\n\r\n", 400},
      {"GET nowhere HTTP/1.1\r\nhost: x\r\n\r\n", 400},
      {"GET / HTTP/2.0\r\nhost: x\r\n\r\n", 505},
      {"GET / HTTP/1.1\r\n\r\n", 400},
      {kStart + "host: y\r\n\r\n", 400},
      {kStart + "no colon\r\n\r\n", 400},
      {kStart + "a\x01: b\r\n\r\n", 400},
      {kStart + std::string("a: b\0c\r\n\r\n", 11), 400},
      // Of these two readers could see two requests.
      {kStart + "content-length: 1\r\ncontent-length: 2\r\n\r\nab", 400},
      {kStart + "content-length: -1\r\n\r\n", 400},
      {kStart + "content-length: 1x\r\n\r\n", 400},
      {kStart + "content-length: 99999999999999999999\r\n\r\n", 400},
      {kStart + "content-length: 3\r\ntransfer-encoding: chunked\r\n\r\n", 400},
      {kStart + "transfer-encoding: chunked\r\ncontent-length: 3\r\n\r\n", 400},
      {kStart + "transfer-encoding: chunked, gzip\r\n\r\n", 501},
      {kStart + "transfer-encoding: gzip\r\n\r\n", 501},
      {"POST / HTTP/1.0\r\ntransfer-encoding: chunked\r\n\r\n", 400},
      {kStart + "transfer-encoding: chunked\r\n\r\nzz\r\n", 400},
      {kStart + "transfer-encoding: chunked\r\n\r\n1\r\nabc\r\n", 400},
      {kStart + "expect: miracles\r\n\r\n", 417},
      // Too much.
      {kStart + "content-length: 21\r\n\r\n", 413},
      {kStart + "transfer-encoding: chunked\r\n\r\n15\r\n", 413},
      {kStart + "transfer-encoding: chunked\r\n\r\n14\r\n" +
           std::string(20, 'a') + "\r\n1\r\n",
       413},
      {kStart + "transfer-encoding: chunked\r\n\r\n1;" + std::string(500, 'a'),
       431},
      {kStart +
           "transfer-encoding: chunked\r\n\r\n0\r\na: " + std::string(500, 'a'),
       431},
      {"GET /" + std::string(500, 'a'), 431},
      {kStart + "a: " + std::string(500, 'a'), 431},
      {kStart + "a: " + std::string(160, 'a') + "\r\nb: " +
           std::string(160, 'a') + "\r\nc: " + std::string(160, 'a') + "\r\n",
       431},
      {kStart + "a: 1\r\nb: 1\r\nc: 1\r\nd: 1\r\ne: 1\r\n\r\n", 431},
  };
  for (const auto& c : kCases) {
    for (const size_t piece : {1, 7, 1000}) {
      EXPECT_EQ(Read(c.request, piece).refusal().status, c.status)
          << piece << ": " << c.request;
    }
  }
  std::string empty_lines;
  for (int i = 0; i < 300; ++i) empty_lines += "\r\n";
  EXPECT_EQ(Read(empty_lines, 10).refusal().status, 431);
}

}  // namespace
}  // namespace lockstep::http
