#pragma once

#include <absl/status/statusor.h>

#include <map>
#include <string>
#include <vector>

#include "proto/inference.grpc.pb.h"

namespace lockstep::testing {

// What a client sees of an answer, but for how and when it was computed.
struct SeenChoice {
  std::string text;
  std::vector<uint32_t> token_ids;
  std::vector<std::string> logprobs;         // serialized
  std::vector<std::string> prompt_logprobs;  // serialized
  std::map<uint32_t, std::string> calls;     // name and arguments
  std::string end;  // reason and what ended it, and how many tokens it has

  bool operator==(const SeenChoice&) const = default;
};
using SeenAnswer = std::map<uint32_t, SeenChoice>;

// Reads a stream to its end; INTERNAL where events come in an order that is not
// promised. Any thread.
absl::StatusOr<SeenAnswer> Ask(v1::Inference::Stub* stub,
                               const v1::GenerateRequest& request);

// Where two answers differ, in a sentence; empty: nowhere.
std::string Difference(const SeenAnswer& expected, const SeenAnswer& actual);

// Requests of all kinds that have one answer each, with `max_tokens` a choice:
// greedy and seeded; with penalties, bias and several choices; with
// log-probabilities of output and prompt; with the stop string that `stop` is;
// of a schema or an expression, with these or seeded; with a call that must be
// made, as Hermes writes it.
std::vector<v1::GenerateRequest> RequestsOfAllKinds(int max_tokens,
                                                    const std::string& stop);

}  // namespace lockstep::testing
