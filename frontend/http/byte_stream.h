#pragma once

#include <absl/strings/string_view.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/system/error_code.hpp>
#include <cstddef>
#include <functional>

namespace lockstep::http {

// A connection's bytes, as they are (plain_stream.h) or encrypted
// (tls_stream.h): all that a Session knows of its socket.
//
//   stream->Handshake([=](Error failure) { …AwaitReadable… });
//   stream->AwaitReadable([=](Error failure) { …ReadSome(buffer)… });
//
// Of one I/O thread. It waits without a buffer, so an idle connection holds
// none. `done` is called once for each call, later, on the executor, and keeps
// the stream alive until then; Close makes it come soon, with an error.
class ByteStream {
 public:
  using Error = boost::system::error_code;
  using Done = std::function<void(const Error& failure)>;
  using Written = std::function<void(const Error& failure, size_t bytes)>;

  virtual ~ByteStream() = default;
  virtual boost::asio::any_io_executor executor() = 0;

  // Once, before all else.
  virtual void Handshake(Done done) = 0;

  // One at a time: until ReadSome may find bytes, or the end.
  virtual void AwaitReadable(Done done) = 0;
  // What there is, at most `size`; would_block where there is nothing yet.
  virtual size_t ReadSome(char* to, size_t size, Error* failure) = 0;

  // One at a time; `bytes` must stay until it is done, at least one is written.
  virtual void WriteSome(absl::string_view bytes, Written done) = 0;

  // Tells the other end that nothing more comes; it may still be read from.
  virtual void ShutdownSend(Error* failure) = 0;
  virtual void Close() = 0;
};

}  // namespace lockstep::http
