#pragma once

#include <absl/status/statusor.h>
#include <absl/strings/string_view.h>

#include <memory>
#include <string>

namespace lockstep::testing {

// What an HTTP server says, parsed just as far as a test needs it.
struct RawResponse {
  int status = 0;
  std::string head;  // all of it, names in lower case
  std::string body;  // of chunks, joined
  bool is_chunked = false;

  // Empty where there is no such field.
  std::string Field(absl::string_view name) const;
};

// A TCP connection to 127.0.0.1 on which a test may say anything.
//
//   RawConnection client(port);
//   client.Send("GET /health HTTP/1.1\r\nhost: x\r\n\r\n");
//   EXPECT_EQ(client.Read().status, 200);
//
// Blocks; a read that takes 30 s fails the test. One thread.
class RawConnection {
 public:
  // receive_buffer_bytes: of the socket, for a client that reads slowly; 0: the
  // system's choice.
  explicit RawConnection(int port, int receive_buffer_bytes = 0);
  virtual ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  // False where the server has closed the connection.
  bool Send(absl::string_view bytes);
  // Up to the end of one response; status 0 where the connection ends before
  // its head does. `is_head`: it has no body, whatever its head says.
  RawResponse Read(bool is_head = false);
  // Until so many bytes of what is left contain `text`; all bytes so far.
  std::string ReadUntil(absl::string_view text);
  // Everything up to the end of the connection.
  std::string ReadAll();
  bool IsClosed() { return ReadAll().empty(); }
  void Close();

 protected:
  int fd() const { return fd_; }
  // As send and recv: what was done, 0 at the end, less than 0 for an error.
  virtual long SendSome(absl::string_view bytes);
  virtual long ReceiveSome(char* to, size_t size);

 private:
  bool Fill();  // more bytes; false at the end

  int fd_ = -1;
  std::string input_;
};

// GET, or with a body POST application/json, on a connection of its own.
RawResponse Fetch(int port, const std::string& path,
                  const std::string& body = "", const std::string& fields = "");

}  // namespace lockstep::testing
