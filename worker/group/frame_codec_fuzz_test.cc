// Any bytes, in one piece or cut at a place they choose: the reader gives the
// same events, ends with the same status, and what it read can be written and
// read again.

#include <absl/strings/string_view.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <variant>
#include <vector>

#include "worker/group/frame_codec.h"

namespace {

constexpr uint64_t kEpoch = 7;

struct Outcome {
  std::vector<std::string> events;  // as text
  absl::StatusCode code = absl::StatusCode::kOk;

  bool operator==(const Outcome&) const = default;
};

// `step` is that of the last frame.
std::string ToText(const lockstep::FrameReader::Event& event, uint64_t* step) {
  std::string text;
  if (const auto* frame = std::get_if<lockstep::Frame>(&event)) {
    *step = frame->step;
    lockstep::AppendFrame(kEpoch, *frame, &text);
  } else if (const auto* digest = std::get_if<lockstep::Digest>(&event)) {
    lockstep::AppendDigest(kEpoch, *step, *digest, &text);
  } else if (const auto* beat = std::get_if<lockstep::v1::Heartbeat>(&event)) {
    lockstep::AppendHeartbeat(kEpoch, *beat, &text);
  } else {
    lockstep::AppendFailure(kEpoch, std::get<lockstep::v1::FirstFailure>(event),
                            &text);
  }
  return text;
}

Outcome Read(absl::string_view first, absl::string_view second) {
  lockstep::FrameReader reader(kEpoch);
  Outcome outcome;
  uint64_t step = 0;
  for (const absl::string_view piece : {first, second}) {
    reader.Append(piece);
    while (true) {
      auto event = reader.Next();
      outcome.code = event.status().code();
      if (!event.ok()) return outcome;
      if (!event->has_value()) break;
      outcome.events.push_back(ToText(**event, &step));
    }
  }
  return outcome;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const absl::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Outcome whole = Read(bytes, "");
  const size_t cut = size == 0 ? 0 : data[0] % (size + 1);
  if (Read(bytes.substr(0, cut), bytes.substr(cut)) != whole) std::abort();

  std::string written;
  for (const std::string& event : whole.events) written += event;
  if (Read(written, "").events != whole.events) std::abort();
  return 0;
}
