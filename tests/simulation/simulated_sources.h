#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/simulation/checking_sink.h"
#include "tests/simulation/scenario.pb.h"
#include "tests/simulation/wire.h"
#include "worker/group/frame_codec.h"
#include "worker/group/frame_source.h"

namespace lockstep::testing {

// Hears of each message, and of the step it comes in, before the scheduler.
using MessageListener =
    std::function<void(const v1::RankMessage& message, uint64_t step)>;

// Tells `sink`.
MessageListener ListenerOf(CheckingSink* sink);

// Whether one of its events is a Stop.
bool HasStop(const Scenario& scenario);

// The leader's source: the events of a scenario, and a Stop when all is done.
// It keeps what it sent. An idle leader does not wait: the next event comes at
// once. INTERNAL once there are more steps than it could ever take.
class ScriptedSource final : public FrameSource {
 public:
  ScriptedSource(const Scenario& scenario, MessageListener listener);

  absl::Status Next(bool idle, Frame* frame) override;
  absl::Status Agree(const Digest& digest) override;

  const std::vector<SentStep>& sent() const { return sent_; }

 private:
  const Scenario& scenario_;
  const MessageListener listener_;
  const uint64_t most_steps_;
  std::vector<SentStep> sent_;
  uint64_t now_ = 0;
  int next_event_ = 0;
};

// A follower's source: bytes that arrive in pieces. What it says of them is
// what FollowerSource says. UNAVAILABLE where they end.
class WireSource final : public FrameSource {
 public:
  // The size of the pieces depends on `seed`.
  WireSource(std::string wire, uint64_t seed, MessageListener listener);

  absl::Status Next(bool idle, Frame* frame) override;
  absl::Status Agree(const Digest& digest) override;

 private:
  absl::Status Read(FrameReader::Event* event);

  const std::string wire_;
  const MessageListener listener_;
  size_t position_ = 0;
  std::minstd_rand random_;
  size_t largest_piece_;
  FrameReader reader_{kEpoch};
  uint64_t step_ = 0;
};

}  // namespace lockstep::testing
