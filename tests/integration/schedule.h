#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proto/embedding.pb.h"
#include "proto/group.pb.h"
#include "worker/scheduler/scheduler_options.h"

namespace lockstep::testing {

// A request that is served beside the watched one.
struct Mate {
  static constexpr int kStays = 1 << 30;

  v1::AddRequest request;
  int arrives = 0;      // before this step, counted from 0
  int leaves = kStays;  // is aborted before this step
};

// A request, the watched one, and all that must not change a bit of what it
// gets: who is served beside it, how its tokens are cut into steps and pages,
// and what computes them. Request numbers are given on arrival.
struct Schedule {
  v1::AddRequest watched;  // without resume tokens
  int arrives = 0;         // before this step
  int num_resumed = 0;     // of its output's tokens; it arrives with them
  std::vector<Mate> mates;

  SchedulerOptions limits;
  int num_ranks = 1;
  int num_threads = 1;  // of a rank
  std::string isa = "auto";
  int seen_rank = 0;  // whose logits are looked at
};

// What a schedule may choose from.
struct Choices {
  int vocab_size = 0;
  int max_context = 0;         // of the model; at least 900
  std::vector<int> num_ranks;  // sizes of a group
  std::vector<std::string> isas;
};

// A function of its arguments alone, on every machine.
Schedule DrawSchedule(uint32_t seed, const Choices& choices);

// The same, but of the watched request and of every other mate an embedding is
// wanted, all of `hidden_size` values.
Schedule Embedded(Schedule schedule, v1::Pooling pooling, int hidden_size);

// The same request by itself on `num_ranks` ranks of one thread: its prompt in
// one step, pages of 16, and the logits of every position wanted.
Schedule Alone(const Schedule& schedule, int num_ranks);

// For people, a line a request.
std::string Describe(const Schedule& schedule);

}  // namespace lockstep::testing
