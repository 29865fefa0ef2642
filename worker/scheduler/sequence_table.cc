#include "worker/scheduler/sequence_table.h"

#include <glog/logging.h>

#include <algorithm>
#include <utility>

namespace lockstep {

using State = ScheduledSequence::State;

void SequenceTable::Add(std::shared_ptr<const v1::AddRequest> request,
                        uint64_t step) {
  const uint64_t number = request->request();
  CHECK(requests_.empty() || number > requests_.rbegin()->first)
      << "request " << number << " comes after " << requests_.rbegin()->first;
  Request& entry = requests_[number];
  entry.prompt_is_shared = request->bypass_prefix_cache();
  entry.live = static_cast<int>(request->sampling().n());
  num_held_ += entry.live;
  for (uint32_t choice = 0; choice < request->sampling().n(); ++choice) {
    entry.choices.push_back(std::make_unique<ScheduledSequence>(
        SequenceId{number, choice}, request, step));
  }
  if (entry.prompt_is_shared) {
    PromptIsShared(number);
  } else {
    ReleaseHeld(entry.choices.front().get());
  }
}

ScheduledSequence* SequenceTable::Find(SequenceId id) const {
  const auto entry = requests_.find(id.request);
  if (entry == requests_.end()) return nullptr;
  const auto& choices = entry->second.choices;
  return id.choice < choices.size() ? choices[id.choice].get() : nullptr;
}

std::vector<ScheduledSequence*> SequenceTable::Choices(uint64_t request) const {
  std::vector<ScheduledSequence*> live;
  const auto entry = requests_.find(request);
  if (entry == requests_.end()) return live;
  for (const auto& choice : entry->second.choices) {
    if (choice != nullptr) live.push_back(choice.get());
  }
  return live;
}

void SequenceTable::Start(ScheduledSequence* scheduled) {
  CHECK(scheduled->state == State::kWaiting);
  Detach(scheduled);
  scheduled->state = State::kRunning;
  running_.insert(std::lower_bound(running_.begin(), running_.end(), scheduled,
                                   ByPrecedence()),
                  scheduled);
}

void SequenceTable::Requeue(ScheduledSequence* scheduled) {
  CHECK(scheduled->state == State::kRunning);
  Detach(scheduled);
  scheduled->has_sampled = false;
  Enqueue(scheduled);
}

void SequenceTable::PromptIsShared(uint64_t request) {
  Request& entry = requests_.find(request)->second;
  entry.prompt_is_shared = true;
  for (const auto& choice : entry.choices) {
    if (choice != nullptr && choice->state == State::kHeld) {
      ReleaseHeld(choice.get());
    }
  }
}

void SequenceTable::Remove(ScheduledSequence* scheduled) {
  const SequenceId id = scheduled->id();
  const bool led = scheduled->state != State::kHeld;
  const auto entry = requests_.find(id.request);
  Detach(scheduled);
  entry->second.choices[id.choice].reset();
  if (--entry->second.live == 0) {
    requests_.erase(entry);
  } else if (led && !entry->second.prompt_is_shared) {
    PromoteLowestHeld(entry->second);
  }
}

void SequenceTable::PromoteLowestHeld(const Request& request) {
  for (const auto& choice : request.choices) {
    if (choice == nullptr) continue;
    ReleaseHeld(choice.get());
    return;
  }
}

void SequenceTable::ReleaseHeld(ScheduledSequence* scheduled) {
  CHECK(scheduled->state == State::kHeld);
  --num_held_;
  Enqueue(scheduled);
}

void SequenceTable::Enqueue(ScheduledSequence* scheduled) {
  scheduled->state = State::kWaiting;
  waiting_.insert(scheduled);
  waiting_tokens_ += scheduled->sequence.num_tokens();
}

// Out of the list of its state.
void SequenceTable::Detach(ScheduledSequence* scheduled) {
  switch (scheduled->state) {
    case State::kHeld:
      --num_held_;
      return;
    case State::kWaiting:
      waiting_.erase(scheduled);
      waiting_tokens_ -= scheduled->sequence.num_tokens();
      return;
    case State::kRunning:
      running_.erase(std::lower_bound(running_.begin(), running_.end(),
                                      scheduled, ByPrecedence()));
      return;
  }
}

}  // namespace lockstep
