#include "tests/simulation/simulated_sources.h"

#include <absl/strings/str_cat.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "common/status_macros.h"

namespace lockstep::testing {
namespace {

// The first by precedence ends within max_context steps of its own and those of
// the running ones it waits for, so all end within so many each; for each there
// may be a step without work, which commits one in flight.
uint64_t MostSteps(const Scenario& scenario) {
  uint64_t sequences = 0;
  uint64_t last = 0;
  for (const Event& event : scenario.events()) {
    sequences += event.message().add().sampling().n();
    last = std::max(last, event.at());
  }
  const Limits& limits = scenario.limits();
  return last + 2 +
         std::max(1, limits.steps_in_flight()) * sequences *
             (limits.max_sequences() + 1) * limits.max_context();
}

}  // namespace

MessageListener ListenerOf(CheckingSink* sink) {
  return [sink](const v1::RankMessage& message, uint64_t step) {
    if (message.has_add()) sink->Arrived(message.add(), step);
    if (message.has_abort()) sink->Aborted(message.abort().request());
  };
}

bool HasStop(const Scenario& scenario) {
  return std::any_of(
      scenario.events().begin(), scenario.events().end(),
      [](const Event& event) { return event.message().has_stop(); });
}

ScriptedSource::ScriptedSource(const Scenario& scenario,
                               MessageListener listener)
    : scenario_(scenario),
      listener_(std::move(listener)),
      most_steps_(MostSteps(scenario)) {}

absl::Status ScriptedSource::Next(bool idle, Frame* frame) {
  if (sent_.size() == most_steps_) {
    return absl::InternalError(
        absl::StrCat("it has not ended after ", most_steps_, " steps."));
  }
  frame->step = sent_.size() + 1;
  frame->messages.clear();
  const auto add = [&](const v1::RankMessage& message) {
    listener_(message, frame->step);
    frame->messages.push_back(message.SerializeAsString());
  };
  const int num_events = scenario_.events_size();
  if (idle && next_event_ < num_events) {
    now_ = std::max(now_, scenario_.events(next_event_).at());
  }
  for (; next_event_ < num_events; ++next_event_) {
    const Event& event = scenario_.events(next_event_);
    if (event.at() > now_) break;
    add(event.message());
    if (!event.message().has_stop()) continue;
    next_event_ = num_events;
    break;
  }
  if (idle && frame->messages.empty()) {
    v1::RankMessage stop;
    stop.mutable_stop();
    add(stop);
  }
  ++now_;
  sent_.push_back({*frame, {}});
  return absl::OkStatus();
}

absl::Status ScriptedSource::Agree(const Digest& digest) {
  sent_.back().digest = digest;
  return absl::OkStatus();
}

WireSource::WireSource(std::string wire, uint64_t seed,
                       MessageListener listener)
    : wire_(std::move(wire)),
      listener_(std::move(listener)),
      random_(seed + 1) {
  constexpr size_t kLargestPieces[] = {1, 7, 100, 4096};
  largest_piece_ = kLargestPieces[random_() % std::size(kLargestPieces)];
}

absl::Status WireSource::Read(FrameReader::Event* event) {
  while (true) {
    LOCKSTEP_ASSIGN_OR_RETURN(auto next, reader_.Next());
    if (next.has_value()) {
      if (std::holds_alternative<v1::Heartbeat>(*next)) continue;
      *event = *std::move(next);
      return absl::OkStatus();
    }
    if (position_ == wire_.size()) {
      return absl::UnavailableError("the leader's bytes end.");
    }
    const size_t count = std::min<size_t>(1 + random_() % largest_piece_,
                                          wire_.size() - position_);
    reader_.Append(absl::string_view(wire_).substr(position_, count));
    position_ += count;
  }
}

absl::Status WireSource::Next(bool, Frame* frame) {
  FrameReader::Event event;
  LOCKSTEP_RETURN_IF_ERROR(Read(&event));
  if (auto* failure = std::get_if<v1::FirstFailure>(&event)) {
    return absl::UnavailableError(failure->reason());
  }
  if (!std::holds_alternative<Frame>(event)) {
    return absl::InvalidArgumentError("a frame was due.");
  }
  *frame = std::get<Frame>(std::move(event));
  step_ = frame->step;
  v1::RankMessage message;
  for (const std::string& bytes : frame->messages) {
    if (message.ParseFromString(bytes)) listener_(message, step_);
  }
  return absl::OkStatus();
}

absl::Status WireSource::Agree(const Digest& digest) {
  FrameReader::Event event;
  LOCKSTEP_RETURN_IF_ERROR(Read(&event));
  if (!std::holds_alternative<Digest>(event)) {
    return absl::InvalidArgumentError("a digest was due.");
  }
  const Digest& expected = std::get<Digest>(event);
  if (expected == digest) return absl::OkStatus();
  return absl::DataLossError(
      absl::StrCat("step ", step_, " differs from the leader's: expected ",
                   ToHex(expected), ", got ", ToHex(digest), "."));
}

}  // namespace lockstep::testing
