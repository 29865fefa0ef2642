#pragma once

#include <chrono>
#include <cstddef>

namespace lockstep::http {

// What a connection and its client have time for.
struct Timeouts {
  std::chrono::milliseconds handshake{10'000};  // of TLS
  std::chrono::milliseconds idle{75'000};       // between two requests
  std::chrono::milliseconds header{10'000};     // from a request's first byte
  std::chrono::milliseconds body{60'000};       // from its header's end
  // For so many bytes of what is to be written, or all where it is less.
  std::chrono::milliseconds write{30'000};
  size_t least_write_bytes = 128 << 10;
  std::chrono::milliseconds keep_alive{15'000};  // of a stream's silence
  std::chrono::milliseconds linger{2'000};  // for a client to read its refusal
};

}  // namespace lockstep::http
