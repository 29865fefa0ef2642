#pragma once

#include <absl/status/status.h>

#include <cstdint>
#include <string>
#include <vector>

#include "common/digest.h"

namespace lockstep {

// What one step begins with: all that happened since the step before.
struct Frame {
  uint64_t step = 0;  // counts up by one from 1
  // Serialized v1::RankMessage, the same bytes on every rank.
  std::vector<std::string> messages;
};

// Where a rank's step thread gets its frames from, and where it learns that all
// ranks made the same of them.
//
//   LOCKSTEP_RETURN_IF_ERROR(source->Next(!scheduler.HasWork(), &frame));
//   …apply the messages, plan…
//   LOCKSTEP_RETURN_IF_ERROR(source->Agree(digest));
//
// Next and Agree take turns, on one thread. Once the group has failed every
// call returns the first failure, a blocked one too.
class FrameSource {
 public:
  virtual ~FrameSource() = default;

  // The next frame. Blocks: the leader while `idle` and nothing has happened, a
  // follower until the leader has sent one.
  virtual absl::Status Next(bool idle, Frame* frame) = 0;

  // `digest` covers this frame and what this rank makes of it. The leader sends
  // its own, a follower compares; DATA_LOSS names step, expected and got.
  virtual absl::Status Agree(const Digest& digest) = 0;
};

}  // namespace lockstep
