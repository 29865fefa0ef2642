#include "tests/simulation/wire.h"

#include "worker/group/frame_codec.h"

namespace lockstep::testing {

void AppendStep(const SentStep& sent, std::string* wire) {
  AppendFrame(kEpoch, sent.frame, wire);
  AppendDigest(kEpoch, sent.frame.step, sent.digest, wire);
}

std::string ToWire(const std::vector<SentStep>& steps) {
  std::string wire;
  for (const SentStep& sent : steps) AppendStep(sent, &wire);
  return wire;
}

}  // namespace lockstep::testing
