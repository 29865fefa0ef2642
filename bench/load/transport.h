#pragma once

#include <absl/status/status.h>
#include <absl/types/span.h>

#include <chrono>
#include <cstdint>
#include <vector>

namespace lockstep::bench {

using Clock = std::chrono::steady_clock;

// What is asked: token ids, which mean the same to every protocol and model.
struct Prompt {
  std::vector<uint32_t> ids = {};
  int output_tokens = 0;  // exactly: the end of a text is ignored
};

// Hears of one answer. Its owner keeps it until OnEnd.
class Listener {
 public:
  virtual ~Listener() = default;

  virtual void OnTokens(absl::Span<const uint32_t> ids) = 0;  // never none
  virtual void OnEnd(const absl::Status& status) = 0;         // last, once
};

// How requests reach a gateway and answers come back: all of it on one thread,
// that of the caller of HandleOne, since the servers run on the same cores.
//
//   transport->Start(prompt, &listener);
//   while (!listener.has_ended) transport->HandleOne(Clock::time_point::max());
//
// The twin without a network is FakeTransport of the tests, whose clock jumps.
class Transport {
 public:
  virtual ~Transport() = default;

  // Never calls the listener itself.
  virtual void Start(const Prompt& prompt, Listener* listener) = 0;

  // Handles at most one event, for which it waits until `deadline`.
  virtual void HandleOne(Clock::time_point deadline) = 0;

  virtual Clock::time_point Now() const { return Clock::now(); }
};

}  // namespace lockstep::bench
