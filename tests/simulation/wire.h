#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/digest.h"
#include "worker/group/frame_source.h"

namespace lockstep::testing {

inline constexpr uint64_t kEpoch = 7;

// A step as the leader sent it.
struct SentStep {
  Frame frame;
  Digest digest = {};
};

// Appends the bytes of one step.
void AppendStep(const SentStep& sent, std::string* wire);

std::string ToWire(const std::vector<SentStep>& steps);

}  // namespace lockstep::testing
