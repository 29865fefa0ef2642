#pragma once

#include <absl/strings/string_view.h>

#include <cstddef>
#include <functional>
#include <string>

#include "frontend/http/message.h"

namespace lockstep::http {

// Where the answer to one request goes: either Send, or StartStream, any number
// of Write, and End. What comes after that, or once the client has gone, is
// dropped.
//
//   writer->Send({200, {{"content-type", "text/plain"}}, "hello"});
//
// Any thread, one call at a time but for AwaitRoom and OnGone. Nothing blocks.
// A writer that is dropped without an answer ends the connection.
class ResponseWriter {
 public:
  virtual ~ResponseWriter() = default;

  // A large one counts towards a bound on those that are held; another answer
  // goes out instead where there is no room for it.
  virtual void Send(Response response) = 0;

  // The handler keeps so many bytes, in all, of what it will send: they count
  // towards that bound from now on. False where there is no room for them.
  virtual bool Hold(size_t bytes) = 0;

  // The head goes out at once. `keep_alive` is written whenever nothing else
  // was for a while, so that no proxy thinks the stream dead; it must be
  // without meaning wherever two writes meet.
  virtual void StartStream(Response head, std::string keep_alive) = 0;
  virtual void Write(absl::string_view bytes) = 0;

  enum class After { kKeepConnection, kCloseConnection };
  virtual void End(After after) = 0;

  // Back-pressure: calls `resume` once, now or when the client has caught up or
  // has gone; from any thread.
  virtual void AwaitRoom(std::function<void()> resume) = 0;

  // `gone` is called once the client has hung up, or can not be written to, at
  // most once and not after the answer has ended; at once if it has already.
  virtual void OnGone(std::function<void()> gone) = 0;
};

}  // namespace lockstep::http
