#include "tests/testing/http/raw_connection.h"

#include <absl/strings/ascii.h>
#include <absl/strings/match.h>
#include <absl/strings/numbers.h>
#include <absl/strings/str_cat.h>
#include <arpa/inet.h>
#include <glog/logging.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>

namespace lockstep::testing {
namespace {

constexpr int kTimeoutS = 30;

}  // namespace

std::string RawResponse::Field(absl::string_view name) const {
  const std::string key = absl::StrCat("\r\n", name, ": ");
  const size_t at = head.find(key);
  if (at == std::string::npos) return "";
  const size_t start = at + key.size();
  return head.substr(start, head.find("\r\n", start) - start);
}

RawConnection::RawConnection(int port, int receive_buffer_bytes) {
  fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  PCHECK(fd_ >= 0);
  if (receive_buffer_bytes > 0) {
    PCHECK(setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes,
                      sizeof(receive_buffer_bytes)) == 0);
  }
  const timeval timeout = {kTimeoutS, 0};
  PCHECK(setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout)) ==
         0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  PCHECK(connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof(address)) ==
         0);
}

RawConnection::~RawConnection() { Close(); }

void RawConnection::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

bool RawConnection::Send(absl::string_view bytes) {
  while (!bytes.empty()) {
    const long sent = SendSome(bytes);
    if (sent <= 0) return false;
    bytes.remove_prefix(sent);
  }
  return true;
}

long RawConnection::SendSome(absl::string_view bytes) {
  return send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

long RawConnection::ReceiveSome(char* to, size_t size) {
  return recv(fd_, to, size, 0);
}

bool RawConnection::Fill() {
  char buffer[16 << 10];
  const long size = ReceiveSome(buffer, sizeof(buffer));
  PCHECK(size >= 0 || errno == ECONNRESET) << "nothing comes";
  if (size <= 0) return false;
  input_.append(buffer, size);
  return true;
}

std::string RawConnection::ReadUntil(absl::string_view text) {
  while (!absl::StrContains(input_, text)) {
    if (!Fill()) break;
  }
  return input_;
}

std::string RawConnection::ReadAll() {
  while (Fill()) continue;
  return input_;
}

RawResponse RawConnection::Read(bool is_head) {
  RawResponse response;
  const auto take = [this](size_t bytes) {
    std::string taken = input_.substr(0, bytes);
    input_.erase(0, bytes);
    return taken;
  };
  ReadUntil("\r\n\r\n");
  const size_t end = input_.find("\r\n\r\n");
  if (end == std::string::npos) return response;
  response.head = absl::AsciiStrToLower(take(end + 4));
  response.status = std::atoi(response.head.c_str() + sizeof("http/1.1"));
  if (is_head || response.status == 204 || response.status < 200) {
    return response;
  }
  size_t length = 0;
  if (absl::SimpleAtoi(response.Field("content-length"), &length)) {
    while (input_.size() < length && Fill()) continue;
    response.body = take(length);
    return response;
  }
  response.is_chunked = response.Field("transfer-encoding") == "chunked";
  if (!response.is_chunked) {
    response.body = ReadAll();
    input_.clear();
    return response;
  }
  while (true) {
    ReadUntil("\r\n");
    const size_t size = std::strtoul(input_.c_str(), nullptr, 16);
    const size_t line = input_.find("\r\n");
    if (line == std::string::npos) return response;  // cut off
    while (input_.size() < line + 2 + size + 2 && Fill()) continue;
    take(line + 2);
    response.body += take(size);
    take(2);
    if (size == 0) return response;
  }
}

RawResponse Fetch(int port, const std::string& path, const std::string& body,
                  const std::string& fields) {
  RawConnection client(port);
  std::string request = absl::StrCat(body.empty() ? "GET " : "POST ", path,
                                     " HTTP/1.1\r\nhost: x\r\n", fields);
  if (!body.empty()) {
    absl::StrAppend(&request, "content-type: application/json\r\n",
                    "content-length: ", body.size(), "\r\n");
  }
  client.Send(absl::StrCat(request, "\r\n", body));
  return client.Read();
}

}  // namespace lockstep::testing
