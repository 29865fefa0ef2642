#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "proto/group.pb.h"
#include "worker/scheduler/scheduled_sequence.h"

namespace lockstep {

// Owns every live sequence and knows which state it is in:
//
//   Add ──▶ held ──▶ waiting ──Start──▶ running ──Remove──▶ gone
//                       ▲                  │
//                       └─────Requeue──────┘
//
// Choices of one request that may share pages do not compute their prompt at
// the same time: all but the lowest live one are held until PromptIsShared.
// Remove works in every state. Pages are none of its business. Single-threaded.
class SequenceTable {
 public:
  using Waiting = std::set<ScheduledSequence*, ByPrecedence>;

  // All choices of a new request, which arrived in `step`.
  // REQUIRES: its number is greater than all before.
  void Add(std::shared_ptr<const v1::AddRequest> request, uint64_t step);

  // Null if there is no such sequence, or no longer.
  ScheduledSequence* Find(SequenceId id) const;

  // Live choices of a request, the lowest first.
  std::vector<ScheduledSequence*> Choices(uint64_t request) const;

  void Start(ScheduledSequence* scheduled);
  void Requeue(ScheduledSequence* scheduled);

  // The prompt of `request` is in the prefix cache: its held choices wait.
  void PromptIsShared(uint64_t request);

  // Destroys `scheduled`.
  void Remove(ScheduledSequence* scheduled);

  // In order of precedence.
  const std::vector<ScheduledSequence*>& running() const { return running_; }
  const Waiting& waiting() const { return waiting_; }

  bool empty() const { return requests_.empty(); }
  int num_waiting() const {
    return static_cast<int>(waiting_.size()) + num_held_;
  }
  // Over waiting(); held sequences will find theirs in the cache.
  int64_t waiting_tokens() const { return waiting_tokens_; }

 private:
  struct Request {
    std::vector<std::unique_ptr<ScheduledSequence>> choices;  // null when gone
    int live = 0;
    bool prompt_is_shared = false;
  };

  void ReleaseHeld(ScheduledSequence* scheduled);
  void Enqueue(ScheduledSequence* scheduled);
  void Detach(ScheduledSequence* scheduled);
  void PromoteLowestHeld(const Request& request);

  std::map<uint64_t, Request> requests_;
  Waiting waiting_;
  std::vector<ScheduledSequence*> running_;
  int num_held_ = 0;
  int64_t waiting_tokens_ = 0;
};

}  // namespace lockstep
