#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>

namespace lockstep {

// What the clock asks of a stream of messages that a client reads, one write at
// a time: that it is cut off where a write does not end, kept alive where none
// begins, and over after a while, whatever it waits for.
//
//   StreamWatch watch(limits, Clock::now());
//   switch (watch.Look(now)) { … }
//   LookAgainAt(watch.NextLook(now));
//
// Knows no clock: times are given. Not thread-safe.
class StreamWatch {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  struct Limits {
    Clock::duration write = std::chrono::seconds(30);      // of a message
    Clock::duration heartbeat = std::chrono::seconds(15);  // without a write
    Clock::duration total = std::chrono::minutes(30);      // of it all
    // For its end to reach the client, where `total` has passed.
    Clock::duration end = std::chrono::seconds(1);
    // Of an answer in one message, in `write`: see TimeToRead.
    size_t least_bytes = 128 << 10;
  };

  enum class Due {
    kNothing,
    kHeartbeat,
    kEnd,  // `total` has passed; said once
    kCut,  // the client does not read, or not fast enough for its end
  };

  StreamWatch(const Limits& limits, Time now)
      : limits_(limits), begun_(now), since_(now) {}

  // From here on silence is broken by heartbeats.
  void OnAccepted() { is_accepted_ = true; }
  // One begins, and ends.
  void OnWrite(Time now) {
    is_writing_ = true;
    since_ = now;
  }
  void OnWritten(Time now) {
    is_writing_ = false;
    since_ = now;
  }

  Due Look(Time now) {
    if (is_writing_ && now - since_ >= limits_.write) return Due::kCut;
    if (now >= End()) {
      if (is_late_) return Due::kCut;
      is_late_ = true;
      return Due::kEnd;
    }
    const bool is_silent = is_accepted_ && !is_writing_ && !is_late_ &&
                           now - since_ >= limits_.heartbeat;
    return is_silent ? Due::kHeartbeat : Due::kNothing;
  }

  // After a Look; however it is told of writes until then, nothing is due
  // sooner.
  Time NextLook(Time now) const {
    Time next = now + std::min(limits_.write, limits_.heartbeat);
    if (is_writing_) {
      next = std::min(next, since_ + limits_.write);
    } else if (is_accepted_ && now < since_ + limits_.heartbeat) {
      next = std::min(next, since_ + limits_.heartbeat);
    }
    return std::min(next, End());
  }

 private:
  Time End() const {
    return begun_ + limits_.total +
           (is_late_ ? limits_.end : Clock::duration::zero());
  }

  const Limits limits_;
  const Time begun_;
  Time since_;  // a write began, or the last one ended
  bool is_accepted_ = false;
  bool is_writing_ = false;
  bool is_late_ = false;
};

}  // namespace lockstep
