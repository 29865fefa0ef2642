#include "tests/simulation/faults.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace lockstep::testing {
namespace {

using Steps = std::vector<SentStep>;

// Each changes `steps` at `i` if it can.

bool DropMessage(size_t i, uint64_t choice, Steps& steps) {
  auto& messages = steps[i].frame.messages;
  if (messages.empty()) return false;
  messages.erase(messages.begin() + choice % messages.size());
  return true;
}

bool DoubleMessage(size_t i, uint64_t choice, Steps& steps) {
  auto& messages = steps[i].frame.messages;
  if (messages.empty()) return false;
  const std::string twice = messages[choice % messages.size()];
  messages.insert(messages.begin() + choice % messages.size(), twice);
  return true;
}

bool SwapMessages(size_t i, uint64_t choice, Steps& steps) {
  auto& messages = steps[i].frame.messages;
  if (messages.size() < 2) return false;
  const size_t first = choice % (messages.size() - 1);
  std::swap(messages[first], messages[first + 1]);
  return true;
}

bool DelayMessage(size_t i, uint64_t choice, Steps& steps) {
  auto& messages = steps[i].frame.messages;
  if (messages.empty() || i + 1 == steps.size()) return false;
  const auto late = messages.begin() + choice % messages.size();
  auto& next = steps[i + 1].frame.messages;
  next.insert(next.begin(), *late);
  messages.erase(late);
  return true;
}

bool ChangeMessage(size_t i, uint64_t choice, Steps& steps) {
  auto& messages = steps[i].frame.messages;
  if (messages.empty()) return false;
  std::string& message = messages[choice % messages.size()];
  if (message.empty()) return false;
  message[choice / 64 % message.size()] ^= 1 << choice / 8 % 8;
  return true;
}

bool DropFrame(size_t i, uint64_t, Steps& steps) {
  steps.erase(steps.begin() + i);
  return true;
}

bool DoubleFrame(size_t i, uint64_t, Steps& steps) {
  const SentStep twice = steps[i];
  steps.insert(steps.begin() + i, twice);
  return true;
}

bool SwapFrames(size_t i, uint64_t, Steps& steps) {
  if (i + 1 == steps.size()) return false;
  std::swap(steps[i], steps[i + 1]);
  return true;
}

using Change = bool (*)(size_t, uint64_t, Steps&);

Change ChangeOf(Fault::Kind kind) {
  switch (kind) {
    case Fault::DROP_MESSAGE:
      return DropMessage;
    case Fault::DOUBLE_MESSAGE:
      return DoubleMessage;
    case Fault::SWAP_MESSAGES:
      return SwapMessages;
    case Fault::DELAY_MESSAGE:
      return DelayMessage;
    case Fault::CHANGE_MESSAGE:
      return ChangeMessage;
    case Fault::DROP_FRAME:
      return DropFrame;
    case Fault::DOUBLE_FRAME:
      return DoubleFrame;
    case Fault::SWAP_FRAMES:
      return SwapFrames;
    default:
      return nullptr;
  }
}

void ChangeBytes(const Fault& fault, const Steps& sent, std::string* bytes) {
  // Somewhere in the bytes of the step, or behind the last.
  size_t begin = 0;
  std::string step;
  for (const SentStep& before : sent) {
    step.clear();
    AppendStep(before, &step);
    if (before.frame.step >= fault.step()) break;
    begin += step.size();
  }
  if (begin >= bytes->size()) return;
  const size_t at = begin + fault.choice() % step.size();
  const size_t count =
      std::min<size_t>(1 + fault.choice() / 4096 % 40, bytes->size() - at);
  switch (fault.kind()) {
    case Fault::DROP_BYTES:
      bytes->erase(at, count);
      return;
    case Fault::DOUBLE_BYTES:
      bytes->insert(at, bytes->substr(at, count));
      return;
    case Fault::CHANGE_BYTE:
      (*bytes)[at] ^= 1 << fault.choice() / 4096 % 8;
      return;
    case Fault::CUT_OFF:
      bytes->resize(at);
      return;
    default:
      LOG(FATAL) << "not a fault of bytes: " << fault.ShortDebugString();
  }
}

// Of the byte at `offset`; 0 behind the last.
uint64_t StepOfByte(const Steps& sent, size_t offset) {
  std::string bytes;
  for (const SentStep& step : sent) {
    AppendStep(step, &bytes);
    if (offset < bytes.size()) return step.frame.step;
  }
  return 0;
}

}  // namespace

FaultyWire InjectFault(const Fault& fault, const Steps& sent) {
  FaultyWire faulty;
  if (const Change change = ChangeOf(fault.kind()); change != nullptr) {
    Steps steps = sent;
    for (size_t i = std::max<uint64_t>(fault.step(), 1) - 1; i < sent.size();
         ++i) {
      if (change(i, fault.choice(), steps)) break;
    }
    faulty.bytes = ToWire(steps);
  } else {
    faulty.bytes = ToWire(sent);
    ChangeBytes(fault, sent, &faulty.bytes);
  }
  const std::string meant = ToWire(sent);
  const size_t common = std::min(meant.size(), faulty.bytes.size());
  const size_t offset =
      std::mismatch(meant.begin(), meant.begin() + common, faulty.bytes.begin())
          .first -
      meant.begin();
  faulty.first_step = StepOfByte(sent, offset);
  return faulty;
}

bool IsOfTheWire(Fault::Kind kind) {
  return kind != Fault::NONE && kind < Fault::OTHER_PAGE_SIZE;
}

}  // namespace lockstep::testing
