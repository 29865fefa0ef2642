#pragma once

#include <absl/status/statusor.h>
#include <absl/types/span.h>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "tests/integration/contract_models.h"
#include "tests/integration/schedule.h"

namespace lockstep::testing {

// What a watched request got, and what happened to it on the way.
struct Observation {
  struct Row {
    int position = 0;           // of the token that the logits follow
    std::vector<float> logits;  // [vocab_size]
  };

  std::vector<Row> rows;         // in the order they were computed
  std::vector<uint32_t> tokens;  // of the output, resumed ones too
  std::vector<float> embedding;  // instead of them

  // "preempted", "cache hit", … and the schedule's choices: see the .cc file.
  std::set<std::string> events;
};

// Runs a schedule over real engines until its watched request ends. `output` is
// what it gets alone; it arrives with the first num_resumed tokens of it. An
// error of an engine, or a request that never ends, is the status.
//
//   const Schedule alone = Alone(schedule, 1);
//   auto expected = RunSchedule(configuration, alone, {});
//   auto found = RunSchedule(configuration, schedule, expected->tokens);
//   EXPECT_EQ(Difference(*expected, schedule, *found), "");
absl::StatusOr<Observation> RunSchedule(const Configuration& configuration,
                                        const Schedule& schedule,
                                        absl::Span<const uint32_t> output);

// The first thing in `found`, which `schedule` gave, that is not as `expected`
// bit for bit, in words: a token, a value of a row, a row that is missing.
// Empty if nothing is. `expected` has a row for every position from 0.
std::string Difference(const Observation& expected, const Schedule& schedule,
                       const Observation& found);

}  // namespace lockstep::testing
